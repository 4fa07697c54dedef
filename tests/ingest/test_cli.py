"""`holdfast ingest`, called in process."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.errors import Rejected
from holdfast.ingest.cli import runs
from holdfast.testing import drain
from ingest.shop import DB, TABLE, Shop, feed_of, order


@pytest.fixture
def ingest(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a command and give its exit code and its output."""
    from typer.testing import CliRunner

    from holdfast.cli import app

    monkeypatch.setenv("HOLDFAST_DSN", dsn)
    return lambda *words: CliRunner().invoke(app, ["ingest", *words])


APP = """
from datetime import datetime, timezone
from pydantic import BaseModel
from holdfast import Holdfast
from holdfast.ingest import Canonical, Rows

hf = Holdfast()

class Order(BaseModel):
    id: str
    name: str

at = datetime(2024, 1, 1, tzinfo=timezone.utc)
rows = [{"id": f"k{n:05}", "name": "x", "price": n, "at": at} for n in range(90)]
source = Rows(rows, key="id", updated_at="at", axis="price")
hf.ingest("priced", source=source, into=Canonical("public.priced", Order, key="id"), least=30)
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "priced_app.py").write_text(APP)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "priced_app:hf"


@pytest.mark.one_server
def test_plan_draws_the_partitions_and_ddl_prints_what_the_table_lacks(db: DB, ingest: Any, app: str) -> None:
    """P-115, P-152: nothing is started"""
    drawn = ingest("plan", "priced", "--app", app)
    assert drawn.output.count("partition-") == 3
    assert "━" in drawn.output
    parts = json.loads(ingest("plan", "priced", "--app", app, "--json").output)["partitions"]
    assert [(part["min"], part["estimated"]) for part in parts] == [(0, 30), (30, 30), (60, 30)]
    assert db.execute("select count(*) from ingest.starts").fetchone() == (0,)
    statements = ingest("ddl", "priced", "--app", app).output
    db.execute(statements)
    assert ingest("ddl", "priced", "--app", app).output.strip() == ""
    db.execute("alter table public.priced drop column name, drop constraint priced_pkey")
    db.execute(ingest("ddl", "priced", "--app", app).output)
    assert json.loads(ingest("ddl", "priced", "--app", app, "--json").output) == []


@pytest.mark.one_server
def test_status_says_why_a_run_could_not_be_planned(hf: Holdfast, db: DB, ingest: Any) -> None:
    """P-43: there is no run, and the reason must not be hidden behind an older one"""
    feed = feed_of(hf, Shop([order(1)]))
    failed = feed.start()
    drain(hf)
    assert "no table public.orders" in ingest("status", "orders").output
    document = json.loads(ingest("status", "orders", "--json").output)
    assert document["failed_plan"]["run_id"] == str(failed.id)
    db.execute(TABLE)
    feed.start()
    drain(hf)
    shown = ingest("status", "orders").output
    assert ("no table" in shown, "completed  1/1" in shown) == (False, True)


@pytest.mark.one_server
def test_watch_follows_a_run_from_its_planning_on(
    hf: Holdfast, db: DB, ingest: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P-120: also one that cannot be planned, with the exit code of a failure"""
    wait_for_plan = runs.wait_for_plan
    feed = feed_of(hf, Shop([order(n) for n in range(40)]))
    with ThreadPoolExecutor(1) as other:

        def work_meanwhile(*arguments: Any) -> None:
            other.submit(drain, hf)
            wait_for_plan(*arguments)

        monkeypatch.setattr(runs, "wait_for_plan", work_meanwhile)
        feed.start()
        assert ingest("watch", "orders", "--timeout", "60s").exit_code == 1
        db.execute(TABLE)
        run = feed.start()
        watched = ingest("watch", "orders", "--jsonl", "--timeout", "60s")
    assert watched.exit_code == 0
    last = json.loads(watched.stdout.splitlines()[-1])
    assert (last["id"], last["state"]) == (str(run.id), "completed")


@pytest.mark.one_server
def test_force_and_resume_continue_a_failed_run(hf: Holdfast, db: DB, ingest: Any) -> None:
    """P-19, P-153"""
    db.execute(TABLE)
    shop = Shop([order(n) for n in range(40)])
    feed = feed_of(hf, shop, least=20)
    shop.faults = [Rejected("401")]
    feed.start()
    drain(hf, concurrency=1)
    forced = json.loads(ingest("force", "orders", "--reason", "half", "--json").output)
    assert forced["state"] == "consolidation_triggered"
    db.execute("alter table public.orders rename to away")
    drain(hf, bypass_backoff=True)
    shown = ingest("status", "orders").output
    assert "resume-consolidation" in shown
    assert 'relation "public.orders" does not exist' in shown
    db.execute("alter table public.away rename to orders")
    resumed = json.loads(ingest("resume-consolidation", "orders", "--reason", "back", "--json").output)
    assert resumed["state"] == "consolidation_triggered"
    drain(hf)
    shown = ingest("status", "orders").output
    assert "completed (forced)  1/2, 1 failed" in shown
    assert re.search(r"started (now|\d+ (s|min) ago)$", shown, re.MULTILINE)


@pytest.mark.one_server
def test_the_commands_show_and_continue_a_failed_run(hf: Holdfast, db: DB, ingest: Any) -> None:
    """P-43, P-120, P-153: retry, force, watermark, quarantine, backfill and cancel, each with --json"""
    db.execute(TABLE)
    shop = Shop([order(n) for n in range(40)])
    feed = feed_of(hf, shop)
    feed.start()
    shop.faults = [Rejected("the source answered 401")]
    drain(hf)

    shown = ingest("status", "orders").output
    assert "0/1, 1 failed" in shown
    assert "partition-0 at offset 0" in shown
    assert "holdfast ingest retry orders" in shown
    assert json.loads(ingest("status", "orders", "--json").output)["run"]["state"] == "failed"
    again = ingest("retry", "orders", "--reason", "back", "--json")
    assert json.loads(again.output)["state"] == "workers_running"
    drain(hf)
    assert "completed  1/1" in ingest("status", "orders").output
    (row,) = json.loads(ingest("list", "--json").output)
    assert (row["feed"], row["state"], row["target"]) == ("orders", "completed", "public.orders")
    document = json.loads(ingest("watermark", "orders", "--json").output)
    assert document.keys() == {"lastUpdatedAt", "lastRunId", "lastRunCompletedAt"}
    assert json.loads(ingest("quarantine", "orders", "--json").output) == []
    moved = ingest("watermark", "orders", "--set", "2024-01-01", "--reason", "again", "--json")
    assert json.loads(moved.output)["lastUpdatedAt"] == "2024-01-01T00:00:00Z"
    assert ingest("watermark", "orders", "--set", "2024-01-01").exit_code != 0
    started = json.loads(ingest("run", "orders", "--json").output)
    assert ingest("run", "orders").exit_code != 0
    cancelled = json.loads(ingest("cancel", "orders", "--reason", "no", "--json").output)
    assert (cancelled["run_id"], cancelled["state"]) == (started["run_id"], "cancelled")
    since = ingest("backfill", "orders", "--since", "2024-01-01", "--until", "2024-02-01", "--json")
    assert json.loads(since.output)["state"] == "planning"
    drain(hf)
    assert ingest("status", "nosuch").exit_code != 0
    for command in ("force", "resume-consolidation"):
        assert ingest(command, "orders").exit_code != 0
