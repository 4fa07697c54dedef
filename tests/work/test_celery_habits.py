"""A team that comes from Celery: each of its habits, in the words of Holdfast."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Self

import psycopg
import pytest

from holdfast import Ctx, Holdfast, RetryPolicy, RunCancelled, RunFailed, WaitTimedOut
from holdfast.errors import BadInput
from holdfast.testing import Clock, events
from kernel.steps import DB
from worker.running import burst

pytestmark = pytest.mark.one_server


@pytest.fixture
def clock(db: DB) -> Clock:
    clock = Clock(db)
    clock.freeze()
    return clock


@pytest.fixture
def add(hf: Holdfast) -> Any:
    @hf.task
    def add(x: int, y: int) -> int:
        return x + y

    return add


def test_delay_is_start_and_get_is_result(hf: Holdfast, add: Any) -> None:
    """add.delay(2, 3).get(timeout=10)"""
    handle = add.start(2, 3)
    burst(hf)

    assert handle.result(timeout="10s") == 5
    assert add(2, 3) == 5  # as add(2, 3) of Celery: here and now


@pytest.mark.parametrize("later", [600, "10m", timedelta(minutes=10)], ids=str)
def test_countdown_is_delay_by_the_clock_of_the_database(hf: Holdfast, add: Any, clock: Clock, later: Any) -> None:
    """add.apply_async((2, 3), countdown=600)"""
    handle = add.options(delay=later).start(2, 3)

    clock.advance("9m59s")
    burst(hf)
    assert handle.status().state == "pending"

    clock.advance("1s")
    burst(hf)
    assert handle.result() == 5


def test_eta_is_due_at(hf: Holdfast, add: Any, clock: Clock) -> None:
    """add.apply_async((2, 3), eta=…)"""
    handle = add.options(due_at=clock.now() + timedelta(hours=2)).start(2, 3)
    burst(hf)
    assert handle.status().state == "pending"

    clock.advance("2h")
    burst(hf)
    assert handle.result() == 5


def test_a_delay_in_async_code(hf: Holdfast, add: Any, clock: Clock, db: DB) -> None:
    """await add.apply_async((2, 3), countdown=600)"""

    async def start() -> None:
        await add.options(delay="10m").astart(2, 3)
        await hf.aclose()

    asyncio.run(start())

    assert due(db) == [clock.now() + timedelta(minutes=10)]


def test_group_is_start_many_and_may_be_delayed(hf: Holdfast, add: Any, clock: Clock, db: DB) -> None:
    """group(add.s(n, n) for n in range(3)).apply_async(countdown=600)"""
    assert add.options(delay="10m").start_many({"x": n, "y": n} for n in range(3)) == 3
    assert add.options(due_at=clock.now()).start_many([{"x": 1, "y": 1}]) == 1

    assert due(db) == [clock.now(), *[clock.now() + timedelta(minutes=10)] * 3]
    with pytest.raises(BadInput):
        add.options(key="once").start_many([{"x": 1, "y": 1}])


def test_a_delay_counts_inside_a_transaction_of_ones_own(hf: Holdfast, add: Any, clock: Clock, db: DB) -> None:
    """transaction.on_commit(lambda: add.apply_async(…, countdown=600))"""
    with db.transaction():
        add.options(delay="10m", conn=db).start(2, 3)

    assert due(db) == [clock.now() + timedelta(minutes=10)]


def test_a_delayed_start_is_one_statement(hf: Holdfast, add: Any, clock: Clock, db: DB, dsn: str) -> None:
    """The database adds the delay to its own clock; no trip reads it first."""
    sent: list[Any] = []

    class Counting(psycopg.Cursor[Any]):
        def execute(self, query: Any, *arguments: Any, **options: Any) -> Self:
            sent.append(query)
            return super().execute(query, *arguments, **options)

    with psycopg.connect(dsn, autocommit=True, cursor_factory=Counting) as connection:
        add.options(delay="10m", conn=connection).start(2, 3)

    assert len(sent) == 1
    assert due(db) == [clock.now() + timedelta(minutes=10)]


@pytest.mark.parametrize(
    ("retry", "executions"),
    [(5, 5), (RetryPolicy(limit=2, base=10), 2), (1, 1), (False, 1), (0, 1), (None, 1)],
    ids=str,
)
def test_max_retries_is_retry_and_counts_executions(
    hf: Holdfast, db: DB, clock: Clock, retry: Any, executions: int
) -> None:
    """@app.task(autoretry_for=(Exception,), max_retries=4, retry_backoff=True); C-30: 5 is five executions in all"""

    @hf.task(retry=retry)
    def flaky(ctx: Ctx) -> None:
        raise ConnectionError(f"attempt {ctx.attempt}")

    handle = flaky.start()
    for _ in range(7):
        burst(hf)
        clock.advance("1h")

    assert events(db, step=handle.id) == ["claimed", "retried"] * (executions - 1) + ["claimed", "failed"]
    with pytest.raises(RunFailed, match=f"attempt {executions}"):
        handle.result()


@pytest.mark.parametrize(
    ("retry", "executions"), [(4, 4), (RetryPolicy(limit=2, base="1s"), 2), (1, 1), (False, 1)], ids=str
)
def test_a_step_of_a_flow_retries_as_a_task_does(
    hf: Holdfast, db: DB, clock: Clock, retry: Any, executions: int
) -> None:
    """C-30, C-51"""
    order = hf.flow("order")

    @order.step(retry=retry)
    def flaky(ctx: Ctx) -> None:
        raise ConnectionError(f"attempt {ctx.attempt}")

    run = order.start()
    for _ in range(6):
        burst(hf)
        clock.advance("1h")

    with pytest.raises(RunFailed, match=f"attempt {executions}"):
        run.result(timeout=0)
    (step_id,) = db.execute("select id from holdfast.steps").fetchone() or [0]
    assert events(db, step=step_id).count("claimed") == executions


def test_backoff_is_a_policy_with_waits_in_any_form(hf: Holdfast, db: DB, clock: Clock) -> None:
    """retry_backoff=10, retry_backoff_max=15, retry_jitter=False"""

    @hf.task(retry=RetryPolicy(limit=4, base=10, growth=2, longest="15s", jitter=0))
    def flaky() -> None:
        raise ConnectionError("no line")

    flaky.start()
    waits = []
    for _ in range(3):
        burst(hf)
        waits.append((due(db)[0] - clock.now()).total_seconds())
        clock.advance(waits[-1])

    assert waits == [10, 15, 15]


def test_revoke_is_cancel(hf: Holdfast, add: Any) -> None:
    """result.revoke()"""
    handle = add.options(delay="10m").start(2, 3)
    handle.cancel(reason="no longer needed")
    burst(hf)

    with pytest.raises(RunCancelled):
        handle.result()


def test_a_get_that_takes_too_long_times_out(add: Any) -> None:
    """result.get(timeout=0.01)"""
    with pytest.raises(WaitTimedOut):
        add.start(2, 3).result(timeout="10ms")


@pytest.mark.parametrize("option", ["delay", "due_at"])
def test_a_flow_begins_later_too(hf: Holdfast, db: DB, clock: Clock, option: str) -> None:
    """chain(reserve.s(7), charge.s()).apply_async(countdown=600)"""
    order = hf.flow("order")

    @order.step
    def reserve(order_id: int) -> int:
        return order_id

    @order.step(after=reserve)
    def charge(reserve: int) -> int:
        return reserve

    when: Any = "10m" if option == "delay" else clock.now() + timedelta(minutes=10)
    run = order.options(**{option: when}).start(order_id=7)
    burst(hf)
    assert run.status().state == "pending"

    clock.advance("10m")
    burst(hf)
    assert run.result(timeout=0) == {"reserve": 7, "charge": 7}


def due(db: DB) -> list[Any]:
    return [
        row[0] for row in db.execute("select due_at from holdfast.steps where due_at is not null order by due_at, id")
    ]
