"""What users' tests get: tasks run inline, and an app on a database of the test's own."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from holdfast import Ctx, Holdfast, RetryPolicy, Snooze
from holdfast.testing import drain, events, on_database


@pytest.fixture
def hf(dsn):
    hf = Holdfast()
    with on_database(hf, dsn):
        yield hf


def test_drain_runs_all_that_is_due_in_the_queues_of_the_app_and_tells_how_many(hf):
    """W-01, W-05: the queues are those of its tasks."""

    @hf.task(queue="mail")
    def send(number: int) -> int:
        return number

    @hf.task
    async def count(number: int) -> int:
        return number + 1

    sent, counted = send.start(1), count.start(1)

    assert drain(hf) == 2
    assert (sent.result(), counted.result()) == (1, 2)
    assert drain(hf) == 0


def test_drain_runs_what_its_tasks_start(hf):
    @hf.task
    def chain(left: int) -> None:
        if left:
            chain.start(left=left - 1)

    chain.start(left=3)

    assert drain(hf) == 4


def test_drain_leaves_what_is_due_later_until_the_clock_is_advanced(hf, db, clock):
    """W-32: a policy of its own puts it back."""

    @hf.task(retry=RetryPolicy(limit=2, base=timedelta(minutes=5), jitter=0))
    def flaky(ctx: Ctx) -> str:
        if ctx.attempt == 1:
            raise ConnectionError("away")
        return "there"

    started = flaky.start()

    assert (drain(hf), drain(hf)) == (1, 0)
    clock.advance(timedelta(minutes=5))
    assert drain(hf) == 1
    assert started.result() == "there"
    assert events(db, step=started.id) == ["claimed", "retried", "claimed", "succeeded"]


def test_a_burst_does_not_end_while_what_it_held_is_due_again(hf):
    """A poll that found nothing while a step was held says nothing of that step."""

    @hf.task
    def again(ctx: Ctx) -> int:
        if ctx.attempt < 20:
            raise Snooze(0)
        return ctx.attempt

    started = [again.start() for _ in range(8)]

    assert drain(hf) == 8 * 20
    assert [one.result() for one in started] == [20] * 8


def test_drain_works_inside_a_running_loop(hf):
    @hf.task
    async def count(number: int) -> int:
        return number + 1

    async def story():
        started = await count.astart(1)
        settled = await asyncio.to_thread(drain, hf)
        try:
            return settled, await started.aresult()
        finally:
            await hf.aclose()

    assert asyncio.run(story()) == (1, 2)


def test_drain_of_an_app_without_tasks_does_nothing(hf):
    assert drain(hf) == 0


def test_an_app_goes_from_one_database_to_another(template, hf, dsn):
    @hf.task
    def note() -> None: ...

    note.start()
    with template.clone() as other, on_database(hf, other):
        assert drain(hf) == 0

    with on_database(hf, dsn):
        assert drain(hf) == 1


def test_drain_fires_the_ticks_that_the_clock_has_reached_and_never_sweeps(hf, db, clock):
    """X-09 X-16: a schedule waits for the clock that the test sets, and a database under test loses nothing."""

    @hf.task
    def report(region: str) -> str:
        return region

    hf.schedule("nightly", report, {"region": "eu"}, cron="0 2 * * *")
    clock.set(datetime(2027, 3, 1, 12, tzinfo=UTC))
    old = report.start("us")

    assert drain(hf) == 1  # the task; and the worker defines the schedule
    assert drain(hf) == 0
    clock.set(datetime(2027, 3, 2, 2, tzinfo=UTC))
    assert drain(hf) == 1
    assert drain(hf) == 0
    clock.advance("40d")
    assert drain(hf) == 1  # the newest of the ticks that were missed
    assert old.result() == "us"
    outcomes = db.execute("select outcome, sum(ticks) from holdfast.schedule_ticks group by 1 order by 1").fetchall()
    assert outcomes == [("missed", 39), ("started", 2)]
