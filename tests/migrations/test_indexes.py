"""Indexes on tables in use: built concurrently after the migrations, once, and again where a build was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from holdfast import errors, faces
from holdfast.connections.deadline import connect
from holdfast.faces import Face
from holdfast.kernel import calls, db, migrate, sources
from holdfast.models import Done, Settlement
from holdfast.reads import schema_checks
from migrations.conftest import EMBEDDED, Server, as_admin
from migrations.test_migrate import at_once, through_psql, violations
from scenarios.crew import until
from scenarios.proof import Proof

INDEXES = ["index steps_by_kind", "index runs_by_name"]
BUILDING = (
    "select phase from pg_stat_progress_create_index where datid = (select oid from pg_database where datname = %s)"
)

EMBEDDED_ONLY = pytest.mark.parametrize("server", [EMBEDDED], indirect=True)


@pytest.fixture(autouse=True)
def indexed() -> Iterator[None]:
    with faces.plugged("indexed", "migrations.indexed_face"):
        yield


def without_indexes(server: Server, *, tasks: int = 10) -> str:
    """Make a database of an earlier release, whose tables have rows, and give its DSN."""
    dsn = server.database()
    migrate.run(dsn)
    with connect(as_admin(dsn, server.admin)) as connection:
        for name in INDEXES:
            connection.execute(f"drop index holdfast.{name.removeprefix('index ')}")
        db.run(connection, calls.start_tasks([{"name": "noop"}] * tasks))
        db.run(connection, calls.start_run("flow.task", "order", "flow.step", steps=[{"name": "a", "kind": "noop"}]))
    return dsn


@contextmanager
def snapshot(server: Server, dsn: str) -> Iterator[psycopg.Connection]:
    """Keep a transaction open that a build has to wait for."""
    with psycopg.connect(as_admin(dsn, server.admin)) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("select count(*) from holdfast.steps")
        yield connection


@contextmanager
def waiting_build(server: Server, dsn: str) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a migration, in a process of its own, whose build waits for a snapshot."""
    program = f"from holdfast.kernel import migrate; migrate.run({dsn!r})"
    with snapshot(server, dsn):
        path = {"PYTHONPATH": str(Path(__file__).parents[1])}
        builder = subprocess.Popen([sys.executable, "-c", program], env=os.environ | path, stderr=subprocess.DEVNULL)
        try:
            until(lambda: phases(server, dsn) == ["waiting for old snapshots"], "the build waited")
            yield builder
        finally:
            builder.kill()
            builder.wait(30)


def phases(server: Server, dsn: str) -> list[str]:
    with psycopg.connect(server.admin) as connection:
        name = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
        return [phase for (phase,) in connection.execute(BUILDING, [name])]


def check_of_doctor(dsn: str) -> schema_checks.Check:
    with connect(dsn) as connection:
        return schema_checks.indexes(connection)


def test_every_path_makes_the_same_schema(server: Server) -> None:
    """R32: a new database, one with rows, and the script for both."""
    new, used, by_script = server.database(), without_indexes(server), server.database()
    used_by_script = without_indexes(server)

    assert migrate.run(new)[-2:] == INDEXES
    assert migrate.run(used) == INDEXES
    through_psql(server, by_script, migrate.script())
    through_psql(server, used_by_script, migrate.script(after=migrate.code_version()))

    made = [server.dump(dsn) for dsn in (new, used, by_script, used_by_script)]
    assert made == made[:1] * 4
    assert all(name.removeprefix("index ") in made[0] for name in INDEXES)
    for dsn in (new, used, by_script, used_by_script):
        assert (migrate.run(dsn), migrate.status(dsn).pending) == ([], [])


@EMBEDDED_ONLY
def test_a_missing_index_is_pending_but_nobody_has_to_wait_for_it(server: Server) -> None:
    """R32: a worker starts without it, because it is there for speed alone."""
    dsn = without_indexes(server)

    status = migrate.status(dsn)

    assert (status.pending, schema_checks.schema_version(status).verdict) == (INDEXES, "warn")
    with connect(dsn) as connection:
        migrate.check(connection)


@EMBEDDED_ONLY
def test_writers_go_on_during_a_build(server: Server, proof: Proof) -> None:
    """R32: the build waits for an old snapshot, and meanwhile steps are started, claimed and settled."""
    dsn = without_indexes(server)
    with connect(as_admin(dsn, server.admin)) as worker, ThreadPoolExecutor(1) as pool:
        worker.execute("set lock_timeout = '1s'")
        with snapshot(server, dsn):
            building = pool.submit(migrate.run, dsn)
            until(lambda: phases(server, dsn) == ["waiting for old snapshots"], "the build waited")

            db.run(worker, calls.start_task("noop"))
            steps = db.run(worker, calls.claim_steps("w", batch=5))
            settled = db.run(worker, calls.settle_steps([Settlement(s.step_id, s.lease_id, Done()) for s in steps]))

            assert (len(settled), building.done()) == (5, False)
            assert check_of_doctor(dsn).detail == "being built: holdfast.steps_by_kind"
        assert building.result(60) == INDEXES
    proof.add(lost=len(violations(server, dsn)))
    assert violations(server, dsn) == []


def test_what_a_killed_build_left_is_built_again(server: Server) -> None:
    """R2: the index is there and invalid; status and doctor say so, and the next migration replaces it."""
    dsn = without_indexes(server)
    with waiting_build(server, dsn) as builder, psycopg.connect(server.admin, autocommit=True) as admin:
        admin.execute("select pg_terminate_backend(pid, 5000) from pg_stat_progress_create_index")
        assert builder.wait(30) != 0
    found = check_of_doctor(dsn)
    assert (found.verdict, found.detail) == ("warn", "invalid: holdfast.steps_by_kind")
    assert migrate.status(dsn).pending == INDEXES
    again = without_indexes(server)

    assert migrate.run(dsn) == INDEXES

    assert (migrate.status(dsn).pending, check_of_doctor(dsn).verdict) == ([], "ok")
    migrate.run(again)
    assert server.dump(dsn) == server.dump(again)


@EMBEDDED_ONLY
def test_the_script_replaces_what_a_killed_build_left(server: Server) -> None:
    """R2"""
    dsn = without_indexes(server)
    with waiting_build(server, dsn), psycopg.connect(server.admin, autocommit=True) as admin:
        admin.execute("select pg_terminate_backend(pid, 5000) from pg_stat_progress_create_index")

    through_psql(server, dsn, migrate.script(after=migrate.code_version()))

    assert (migrate.status(dsn).pending, check_of_doctor(dsn).verdict) == ([], "ok")


def test_the_script_waits_for_a_build_and_not_inside_its_transaction(server: Server) -> None:
    """R32: the build would wait for that transaction, until a lock that it holds times out for the script."""
    dsn = without_indexes(server)
    polling = "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and query like '%%try_advisory%%'"
    with ThreadPoolExecutor(1) as pool, psycopg.connect(server.admin, autocommit=True) as admin:
        with waiting_build(server, dsn) as builder:
            script = pool.submit(through_psql, server, dsn, migrate.script(after=migrate.code_version()))
            until(lambda: admin.execute(polling).fetchone() == (1,) or script.done(), "the script waited")
            os.kill(builder.pid, signal.SIGKILL)

        script.result(60)
    assert (migrate.status(dsn).pending, check_of_doctor(dsn).verdict) == ([], "ok")


def test_a_build_whose_client_was_killed_is_waited_for(server: Server) -> None:
    """R2: the server may go on with it; two builds of one index at once would end in a deadlock."""
    dsn = without_indexes(server)
    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like 'lock table%%'"
    with ThreadPoolExecutor(1) as pool, psycopg.connect(server.admin, autocommit=True) as admin:
        with waiting_build(server, dsn) as builder:
            os.kill(builder.pid, signal.SIGKILL)
            next_one = pool.submit(migrate.run, dsn)
            until(lambda: admin.execute(waiting).fetchone() == (1,) or next_one.done(), "the next one waited")
            assert not next_one.done()

        assert INDEXES[1] in next_one.result(60)
    assert (migrate.status(dsn).pending, check_of_doctor(dsn).verdict) == ([], "ok")


@EMBEDDED_ONLY
def test_a_build_that_commits_after_it_gave_up_its_lock_is_found(server: Server) -> None:
    """R32: PostgreSQL unlocks the table before it commits; whoever drops the index in between has to look again."""
    dsn = without_indexes(server)
    with waiting_build(server, dsn), psycopg.connect(server.admin, autocommit=True) as admin:
        admin.execute("select pg_terminate_backend(pid, 5000) from pg_stat_progress_create_index")
    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like 'drop index%%'"
    with ThreadPoolExecutor(1) as pool, psycopg.connect(as_admin(dsn, server.admin)) as late:
        late.execute("update pg_index set indisvalid = true where indexrelid = 'holdfast.steps_by_kind'::regclass")
        building = pool.submit(migrate.run, dsn)
        with psycopg.connect(server.admin, autocommit=True) as admin:
            until(lambda: admin.execute(waiting).fetchone() == (1,) or building.done(), "the drop waited")
        late.commit()

        assert building.result(60) == INDEXES[1:]
    assert migrate.status(dsn).pending == []


def test_four_at_once_build_each_index_once(server: Server, proof: Proof) -> None:
    """R32: three by the program, one by psql; whoever waits holds no snapshot that a build would wait for."""
    dsn = without_indexes(server)

    def by_psql() -> list[str]:
        through_psql(server, dsn, migrate.script(after=migrate.code_version()))
        return []

    applied = at_once(*[lambda: migrate.run(dsn)] * 3, by_psql)

    proof.add(rounds=len(applied))
    built = [name for names in applied for name in names]
    assert len(built) == len(set(built))
    assert migrate.status(dsn).pending == []


@EMBEDDED_ONLY
def test_a_build_outlasts_the_timeouts_of_its_login(server: Server) -> None:
    """As a careful administrator sets them."""
    dsn = without_indexes(server)
    name = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
    with snapshot(server, dsn) as held, ThreadPoolExecutor(1) as pool:
        server.execute("alter database {} set lock_timeout = '1ms'", name)
        building = pool.submit(migrate.run, dsn)
        until(lambda: phases(server, dsn) == ["waiting for old snapshots"] or building.done(), "the build waited")
        held.rollback()

        assert building.result(60) == INDEXES


@pytest.mark.parametrize(
    "statement",
    [
        "create index steps_by_kind on holdfast.steps (kind)",
        "create unique index concurrently if not exists steps_by_kind on holdfast.steps (kind)",
        "create index concurrently if not exists by_kind on public.steps (kind)",
        "drop index holdfast.steps_by_kind",
    ],
)
def test_another_statement_is_refused(statement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would block writers, or guard something that must hold before it is built."""
    (tmp_path / "indexes.sql").write_text(f"{statement};\n")
    monkeypatch.setattr(Face, "folder", lambda _: tmp_path)

    with pytest.raises(errors.BadDefinition) as exc_info:
        sources.indexes()
    assert exc_info.value.where == "indexes.sql"
    assert statement in exc_info.value.what
