"""A start inside the caller's own transaction, through every library that `conn` takes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from connections.own import ALL, Own
from holdfast import Holdfast
from holdfast.errors import InputRefused, KeyConflict
from holdfast.flow.define import Flow
from holdfast.kernel import calls
from holdfast.kernel import db as kernel
from worker.running import burst

pytestmark = pytest.mark.one_server
DB = Connection[Any]


@pytest.fixture
def hf(dsn: str) -> Iterator[Holdfast]:
    app = Holdfast(dsn)
    yield app
    app.close()


@pytest.fixture
def send(hf: Holdfast) -> Any:
    @hf.task(queue="post")
    def send(number: int, note: str = "") -> int:
        return number

    return send


@pytest.fixture
def order(hf: Holdfast) -> Flow:
    order = hf.flow("order")

    @order.step
    def pack(number: int) -> int:
        return number

    return order


@pytest.fixture(params=ALL)
def own(request: pytest.FixtureRequest, dsn: str, db: DB) -> Iterator[Own]:
    with ExitStack() as stack:
        yield ALL[request.param](dsn, stack)


def started(db: DB) -> list[int]:
    """Give the numbers of what was started and can be seen, in order."""
    numbers = "select coalesce(s.input, '{}') || coalesce(r.input, '{}') as input from holdfast.steps s"
    rows = db.execute(f"{numbers} left join holdfast.runs r on r.id = s.run_id order by s.id").fetchall()
    return [row[0].get("number", (row[0].get("context") or {}).get("number")) for row in rows]


def test_what_is_started_comes_and_goes_with_their_transaction(
    own: Own, db: DB, hf: Holdfast, send: Any, order: Flow
) -> None:
    task, flow, awkward = send.options(conn=own.conn), order.options(conn=own.conn), "\t\\N\n\r\\. é"

    def start_all(first: int) -> None:
        """The start comes first: nothing of the caller's has begun the transaction yet."""
        own.start(task, number=first)
        own.start(flow, number=first + 1)
        assert own.start_many(task, [{"number": first + 2}, {"number": first + 3, "note": awkward}]) == 2

    own.begin()
    start_all(10)
    assert started(db) == []
    own.rollback()
    assert started(db) == []

    own.begin()
    own.undone(lambda: start_all(20))
    start_all(30)
    own.undone(lambda: start_all(40))
    own.commit()

    assert started(db) == [30, 31, 32, 33]
    assert db.execute("select input->>'note' from holdfast.steps where input->>'number' = '33'").fetchone() == (
        awkward,
    )
    burst(hf, queues=("post", "default"))
    assert db.execute("select distinct state from holdfast.steps order by 1").fetchall() == [("complete",), ("done",)]


def test_their_session_is_left_as_it_was(own: Own, db: DB, send: Any, order: Flow) -> None:
    """Nothing is committed or set: the same transaction goes on, and the call was its last statement."""
    state = "select pg_current_xact_id()::text"  # of a transaction that was committed there would be another
    # Those with a dot are ours, local to the transaction: the SQL functions keep the actor there.
    listed = "from pg_settings s where strpos(s.name, '.') = 0"
    settings = f"select string_agg(s.name || '=' || s.setting, ';' order by s.name) {listed}"
    own.begin()
    pid, before = own.execute("select pg_backend_pid()"), (own.execute(state), own.execute(settings))

    own.start(send.options(conn=own.conn), 1)
    asked = db.execute("select query, state from pg_stat_activity where pid = %s", [pid]).fetchone()
    own.start(order.options(conn=own.conn), number=1)
    own.start_many(send.options(conn=own.conn), [{"number": 1}])

    assert asked is not None
    assert "start_task" in asked[0]
    assert asked[1] == "idle in transaction"
    assert (own.execute(state), own.execute(settings)) == before
    own.rollback()


def test_a_key_conflict_is_ours_and_breaks_the_transaction_as_any_error_does(own: Own, db: DB, send: Any) -> None:
    task = send.options(conn=own.conn, key="parcel 1")
    own.begin()
    own.start(task, 1)

    def conflict() -> None:
        with pytest.raises(KeyConflict) as refused:
            own.start(task, 2)
        assert "parcel 1" in refused.value.what
        assert refused.value.next
        with pytest.raises(Exception, match="transaction is aborted"):
            own.execute("select 1")

    own.undone(conflict)
    assert own.start(task, 1).id == own.start(task, 1).id
    own.commit()

    assert started(db) == [1]


def test_a_bulk_start_that_is_refused_half_way_takes_nothing_else_with_it(own: Own, db: DB, send: Any) -> None:
    own.begin()
    own.start(send.options(conn=own.conn), 1)

    with pytest.raises(InputRefused):
        own.start_many(send.options(conn=own.conn), [{"number": 2}] * 5000 + [{"number": "x"}])
    assert own.start_many(send.options(conn=own.conn), []) == 0
    own.commit()

    assert started(db) == [1]


def test_a_sleeping_worker_is_woken_by_their_commit(own: Own, dsn: str, db: DB, send: Any) -> None:
    kernel.run(db, calls.claim_steps("sleeper", "post"))
    kernel.run(db, calls.mark_asleep("sleeper", "post"))
    with psycopg.connect(dsn, autocommit=True) as listener:
        listener.execute("listen holdfast")

        def heard() -> list[str]:
            listener.execute("select")
            return [hint.payload for hint in listener.notifies(timeout=0)]

        own.begin()
        own.start(send.options(conn=own.conn), 1)
        own.start_many(send.options(conn=own.conn), [{"number": 2}])
        before = heard()
        own.commit()

        assert (before, heard()) == ([], ["post"])


def test_none_of_the_libraries_is_imported_for_those_who_do_not_use_it() -> None:
    code = """
import sys
from holdfast import Holdfast
hf = Holdfast("postgresql://")
@hf.task
def send(number: int) -> None: ...
send.options(key="k")
hf.flow("order").options(key="k")
print(sorted({name.partition(".")[0] for name in sys.modules} & {"asyncpg", "sqlalchemy", "django"}))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "[]"
