"""Workers that are lost, that are many, or that die at a commit: what a task is owed all the same."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from psycopg import Connection

from flow.stage import armed
from flow.told import Told, diamond, states
from holdfast import Ctx, Holdfast, Snooze
from holdfast.flow.define import Flow
from holdfast.kernel import calls
from holdfast.kernel.db import run as make
from holdfast.testing import Clock, drain, events
from kernel.steps import claim
from worker.running import until, working

pytestmark = pytest.mark.one_server

DB = Connection[Any]
LEASE = timedelta(seconds=30)
IN_PROCESS = "select name, state, in_process, attempts, error ->> 'type', error ->> 'message' from flow.steps"
MOST_CONNECTIONS = 20  # of a worker, its contexts and its app; by far fewer than there are steps
CONNECTIONS = """select count(*) from pg_stat_activity
                  where datname = current_database() and backend_type = 'client backend'"""


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_started_task_is_in_the_queue_with_its_transaction_and_not_without(hf: Holdfast, db: DB, told: Told) -> None:
    """T-21, T-18, T-05: no process has to remember it"""
    flow = diamond(hf, told)
    with db.transaction(force_rollback=True):
        flow.options(conn=db).start()
    assert drain(hf) == 0

    with db.transaction():
        run = flow.options(conn=db).start()

    assert db.execute("select name from flow.steps s where in_process is false and depends_on = '{}'").fetchall() == [
        ("top",)
    ]
    assert drain(hf) == 4
    assert run.status().state == "complete"


def test_a_task_that_waits_is_continued_by_another_worker(hf: Holdfast, dsn: str, clock: Clock) -> None:
    """T-15, T-71, T-83: what is to be done later stands in the database, not in the process that found it out"""
    done: list[str] = []
    first, second = hf, Holdfast(dsn)
    flows = [waiting(app, done, name) for app, name in ((first, "first"), (second, "second"))]
    run = flows[0].start()
    drain(first)
    assert done == ["first"]

    first.close()
    clock.advance(timedelta(minutes=5))
    drain(second)

    assert done == ["first", "second", "second"]
    assert flows[1].handle(run.id).status().state == "complete"
    second.close()


def waiting(app: Holdfast, done: list[str], name: str) -> Flow:
    """Make a flow whose first step waits once; what is done is written down under the name of its app."""
    flow = app.flow("waiting")

    @flow.step
    def once(ctx: Ctx) -> None:
        done.append(name)
        if ctx.attempt == 1:
            raise Snooze(timedelta(minutes=1))

    @flow.step(after=once)
    def then() -> None:
        done.append(name)

    return flow


def test_a_lost_workers_step_is_given_back_and_costs_one_attempt(
    hf: Holdfast, db: DB, clock: Clock, told: Told
) -> None:
    """T-54, T-08, C-55: in process while it is held and no longer, error with who was lost, attempts + 1"""
    run = diamond(hf, told).start()
    (held,) = claim(db, "lost", lease=LEASE)
    row = db.execute(f"{IN_PROCESS} where step_id = %s", [held.step_id]).fetchone()
    assert row == ("top", "in_progress", True, 0, None, None)

    clock.advance(LEASE + timedelta(seconds=1))
    make(db, calls.rescue_steps())

    row = db.execute(f"{IN_PROCESS} where step_id = %s", [held.step_id]).fetchone()
    assert row == (
        "top", "error", False, 1, "LeaseExpired", "worker lost was silent past its lease (attempt 1)"
    )  # fmt: skip
    clock.advance(timedelta(minutes=5))
    drain(hf)
    assert run.status().state == "complete"
    assert events(db, step=held.step_id) == ["claimed", "expired", "reopened", "claimed", "succeeded"]
    assert db.execute(f"{IN_PROCESS} where in_process").fetchall() == []


def test_steps_that_are_ready_run_at_once_and_no_more_than_the_limit(hf: Holdfast) -> None:
    """T-55: ten of them, each held until there are four at once"""
    gate, running, peak = threading.Event(), Counter[str](), Counter[str]()
    lock = threading.Lock()
    flow = hf.flow("wide")

    def wait() -> None:
        with lock:
            running["now"] += 1
            peak["at once"] = max(peak["at once"], running["now"])
        gate.wait(30)
        with lock:
            running["now"] -= 1

    for number in range(10):
        flow.step(name=f"wait{number}")(wait)
    run = flow.start()

    with working(hf, concurrency=4):
        until(lambda: running["now"] >= 4, "four at once")
        gate.set()
        until(lambda: run.status().outcome is not None, "the end of the task")

    assert peak["at once"] == 4
    assert run.status().state == "complete"


def test_connections_are_pooled_and_do_not_grow_with_the_steps(hf: Holdfast, db: DB) -> None:
    """T-137: each handler writes through its context, reads through the app and commits with its step"""
    flow = hf.flow("wide")

    @flow.step
    def items(count: int) -> list[int]:
        return list(range(count))

    @flow.step(each=items)
    def ship(ctx: Ctx, item: int) -> int:
        ctx.note("on its way")
        with hf._engine.connection() as connection, ctx.transaction() as transaction:
            connection.execute("select 1")
            transaction.execute("select 1")
        return item

    used = []
    with working(hf, concurrency=4):
        for count in (8, 80):
            run = flow.start(count=count)
            until(lambda: run.status().outcome is not None, "the end of the task")  # noqa: B023
            used += db.execute(CONNECTIONS).fetchone() or ()

    assert used[1] <= max(used[0], MOST_CONNECTIONS), used


def test_two_workers_on_one_task_do_each_step_once(hf: Holdfast, db: DB) -> None:
    """T-144: both claim, none twice"""
    flow = hf.flow("wide")
    done: list[int] = []

    @flow.step
    def items() -> list[int]:
        return list(range(40))

    @flow.step(each=items)
    def ship(item: int) -> int:
        done.append(item)
        return item

    @flow.step(after=ship)
    def join(ship: list[int]) -> int:
        done.append(-1)
        return len(ship)

    run = flow.start()
    with working(hf, identity="one"), working(hf, identity="other"):
        until(lambda: run.status().outcome is not None, "the end of the task")

    assert sorted(done) == [-1, *range(40)]
    twice = "select step_id from holdfast.journal where event = 'succeeded' group by step_id having count(*) > 1"
    assert db.execute(twice).fetchall() == []
    assert run.result_of("join") == 40


def test_a_key_of_its_own_stays_with_a_step_over_its_attempts(hf: Holdfast, clock: Clock) -> None:
    """T-131, T-73: what it does outside can be told apart from what another did, and from nothing else"""
    flow = hf.flow("order")
    seen: list[tuple[str, int]] = []

    @flow.step(retry=2)
    def charge(ctx: Ctx) -> None:
        seen.append((ctx.idempotency_key, ctx.attempt))
        if ctx.attempt == 1:
            raise ValueError("not yet")

    for _ in range(2):
        flow.start()
        drain(hf)
        clock.advance(timedelta(minutes=5))
        drain(hf)

    keys = Counter(key for key, _ in seen)
    assert sorted(keys.values()) == [2, 2]
    assert [attempt for _, attempt in seen] == [1, 2, 1, 2]


@pytest.mark.parametrize(("place", "executed"), [("before_commit", 2), ("after_commit", 1)])
def test_a_steps_effect_and_its_state_are_there_together_or_not_at_all(
    hf: Holdfast, db: DB, clock: Clock, place: str, executed: int
) -> None:
    """T-132, T-49: whatever happens around the commit"""
    db.execute("create table public.effects (step_id bigint)")
    flow = hf.flow("order")
    attempts: list[int] = []

    @flow.step
    def charge(ctx: Ctx) -> str:
        attempts.append(ctx.attempt)
        with ctx.transaction() as transaction:
            transaction.execute("insert into public.effects values (%s)", [ctx.step_id])
        return "paid"

    run = flow.start()
    with armed(f"{place}:raise"):
        drain(hf)
    is_done = states(run)["charge"] == "complete"
    assert (is_done, db.execute("select count(*) from public.effects").fetchone()) == (executed == 1, (int(is_done),))

    clock.advance(timedelta(minutes=5))
    drain(hf)

    assert len(attempts) == executed
    assert states(run) == {"charge": "complete"}
    assert db.execute("select count(*) from public.effects").fetchone() == (1,)
