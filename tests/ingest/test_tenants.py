"""A login for one tenant sees, reads and changes nothing of another tenant's feeds."""

from __future__ import annotations

import psycopg
import pytest

from holdfast.models import Done
from ingest.runs import DB, claim, consolidate, define, put, run_of, settle
from properties.guards import login_for

TABLES = [
    "feeds", "watermarks", "run_metadata", "worker_runs", "partition_progress", "messages", "events", "raw_nivoda",
    "payloads", "sightings", "known_feeds", "starts", "run_facts", "partitions", "feed_watermarks", "event_log",
    "quarantine", "quarantined", "pricing_rules", "prices", "payloads_nivoda", "sightings_nivoda",
]  # fmt: skip
HIDDEN = {"payloads_nivoda", "sightings_nivoda"}  # the parent's policy guards the rows; nobody may read a part


def test_the_rows_of_a_feed_are_its_tenants(db: DB) -> None:
    """R34"""
    define(db, tenant="ours", max_rejects=1)
    db.execute("select ingest.define_price('nivoda', 1, 2)")
    run_id = run_of(db, 1)
    (step,) = claim(db, "page")
    with db.transaction():
        put(db, step, ["a", None])
        settle(db, step, Done({"records": 2}))
    consolidate(db)
    forced = "select count(*) from pg_class where relnamespace = 'ingest'::regnamespace and relkind in ('r', 'p')"
    assert db.execute(f"{forced} and not (relrowsecurity and relforcerowsecurity)").fetchone() == (0,)
    for role in ("hf_reader", "hf_worker"):
        for tenant, rows in (("ours", True), ("theirs", False)):
            with login_for(db, role, tenant) as login:
                for table in TABLES:
                    if table in HIDDEN:
                        with pytest.raises(psycopg.errors.InsufficientPrivilege):
                            login.execute(f"select from ingest.{table}")
                        continue
                    found = login.execute(f"select exists (select from ingest.{table})").fetchone()
                    assert found == (rows,), (role, tenant, table)
    with login_for(db, "hf_operator", "theirs") as login:
        for statement in (
            "select ingest.start('nivoda')",
            "select ingest.define_feed('nivoda', '{}', null, 'theirs')",
            "select ingest.set_watermark('nivoda', '2020-01-01', 'x')",
            "select ingest.define_price('nivoda', 1, 2)",
            f"select ingest.force('{run_id}')",
            f"select ingest.retry_partitions('{run_id}')",
            f"select ingest.resume_consolidation('{run_id}')",
            f"select ingest.cancel_run('{run_id}')",
        ):
            with pytest.raises(psycopg.Error) as caught:
                login.execute(statement)
            assert caught.value.sqlstate in {"RN004", "RN009"}, statement
        assert login.execute(f"select ingest.planning_step('{run_id}')").fetchone() == (None,)
        assert login.execute(f"select count(*) from ingest.run_summary('{run_id}')").fetchone() == (0,)
