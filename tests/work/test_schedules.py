"""Schedules as Python declares them, and workers that fire them: busy, asleep, and three at once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import psycopg
import pytest

from holdfast import Ctx, Holdfast
from holdfast.errors import BadDefinition, HoldfastError
from holdfast.kernel import calls, schedule_calls
from holdfast.kernel.db import run
from holdfast.testing import Clock
from holdfast.worker import listener, ticker
from kernel.schedules import at, define, listed, ticks
from kernel.steps import DB, value
from worker.running import burst, read, until, working

pytestmark = pytest.mark.one_server
SOON = timedelta(seconds=1.2)


def app(dsn: str) -> Holdfast:
    hf = Holdfast(dsn)

    @hf.task
    def report(region: str, day: int = 1) -> str:
        return f"{region} {day}"

    order = hf.flow("order")

    @order.step
    def reserve(order_id: int) -> int:
        return order_id

    return hf


def task(hf: Holdfast) -> Any:
    return next(iter(hf.work))


def test_a_worker_defines_schedules_and_fires_what_is_due(dsn: str, db: DB, clock: Clock) -> None:
    clock.set(at("03-01 00:30"))
    hf = app(dsn)
    hf.schedule("eu", task(hf).options(queue="night", priority=2), {"region": "eu"}, cron="0 2 * * *", missed="all",
                timezone="Europe/Berlin", overlap="skip", spread=60, missed_window="2h")  # fmt: skip
    hf.schedule("orders", hf.flows.find("order"), {"order_id": 7}, every="1h", tenant="default")
    burst(hf)
    eu = listed(db, "eu")
    assert (eu["target"], eu["input"], eu["options"]) == ("report", {"region": "eu"}, {"queue": "night", "priority": 2})
    assert (eu["missed"], eu["missed_window"], eu["overlap"]) == ("all", timedelta(hours=2), "skip")
    assert eu["words"] == "At 02:00 every day, Europe/Berlin"
    assert timedelta(0) <= eu["next_at"] - at("03-01 01:00") < timedelta(minutes=1)
    clock.set(at("03-01 01:30"))
    burst(hf, queues=("default", "night"))
    burst(hf, queues=("default", "night"))

    assert [outcome for _, outcome in ticks(db, "eu")] == ["started"]
    assert [outcome for _, outcome in ticks(db, "orders")] == ["started"]
    done = db.execute("select kind, state, result from holdfast.steps order by id").fetchall()
    assert sorted(done) == [("order.reserve", "complete", 7), ("report", "done", "eu 1")]
    assert run(db, calls.violations()) == []


def test_an_operators_pause_survives_the_workers_that_define_it_again(dsn: str, db: DB) -> None:
    hf = app(dsn)
    hf.schedule("eu", task(hf), {"region": "eu"}, every="1h")
    burst(hf)
    run(db, schedule_calls.pause_schedule("eu", reason="sale"))
    burst(hf)

    assert (listed(db, "eu")["state"], listed(db, "eu")["pause_reason"]) == ("paused", "sale")


def test_a_schedule_in_code_whose_time_has_passed_is_over_and_keeps_no_worker_from_starting(dsn: str, db: DB) -> None:
    hf = app(dsn)
    past = datetime.now(UTC) - timedelta(days=400)
    hf.schedule("once", task(hf), {"region": "eu"}, at=past)
    hf.schedule("ended", task(hf), {"region": "eu"}, every="1h", ends_at=past)
    hf.schedule("cron", task(hf), {"region": "eu"}, cron="0 * * * *", ends_at=past)
    burst(hf)

    assert [listed(db, name)["state"] for name in ("once", "ended", "cron")] == ["ended"] * 3
    assert value(db, "select count(*) from holdfast.steps") == 0


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"cron": "0 2 * * * *"}, "cron"),
        ({"cron": "0 0 30 2 *"}, "cron"),
        ({"cron": "0 25 * * *"}, "cron"),
        ({"cron": 5}, "cron"),
        ({}, "cron"),
        ({"cron": "0 2 * * *", "every": 60}, "cron"),
        ({"cron": "0 2 * * *", "timezone": "Europe/Bern"}, "timezone"),
        ({"every": 0.5}, "every"),
        ({"every": "soon"}, "every"),
        ({"at": datetime(2027, 1, 1)}, "at"),  # noqa: DTZ001
        ({"every": 60, "ends_at": "tomorrow"}, "ends_at"),
        ({"cron": "0 0 1 1 *", "starts_at": datetime(9000, 6, 1, tzinfo=UTC)}, "starts_at"),
        ({"every": 60, "ends_at": datetime(1899, 6, 1, tzinfo=UTC)}, "ends_at"),
        ({"every": 60, "missed": "some"}, "missed"),
        ({"every": 60, "overlap": "wait"}, "overlap"),
        ({"every": 60, "spread": "2d"}, "spread"),
        ({"every": 60, "tenant": "*"}, "tenant"),
        ({"every": 60, "missed_window": -1}, "missed_window"),
    ],
)
def test_a_schedule_that_cannot_work_is_refused_where_it_is_defined(options: dict[str, Any], where: str) -> None:
    hf = app("dbname=none")
    with pytest.raises(HoldfastError) as refused:
        hf.schedule("eu", task(hf), {"region": "eu"}, **options)

    assert (refused.value.where, bool(refused.value.next)) == (where, True)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda hf: hf.schedule("eu", task(hf), {"region": 5}, every=60),
        lambda hf: hf.schedule("eu", task(hf), {}, every=60),
        lambda hf: hf.schedule("eu", task(hf), {"region": "eu", "colour": 1}, every=60),
        lambda hf: hf.schedule("eu", task(hf), ["eu"], every=60),
        lambda hf: hf.schedule("eu", "report", {"region": "eu"}, every=60),
        lambda hf: hf.schedule("eu", task(hf).options(key="a"), {"region": "eu"}, every=60),
        lambda hf: hf.schedule("", task(hf), {"region": "eu"}, every=60),
        lambda hf: hf.schedule("eu", hf.flows.find("order"), {"order_id": "seven"}, every=60),
        lambda hf: hf.schedule("eu", hf.flows.find("order").options(key="a"), {"order_id": 7}, every=60),
        lambda hf: [hf.schedule("eu", task(hf), {"region": "eu"}, every=60) for _ in range(2)],
    ],
)
def test_an_input_that_its_target_would_refuse_is_refused_at_once(attempt: Callable[[Holdfast], Any]) -> None:
    with pytest.raises(HoldfastError) as refused:
        attempt(app("dbname=none"))

    assert refused.value.what


def test_steps_are_not_added_to_a_flow_that_is_scheduled(dsn: str) -> None:
    hf = app(dsn)
    order = hf.flows.find("order")
    hf.schedule("orders", order, {"order_id": 7}, every=60)

    with pytest.raises(BadDefinition):
        order.step(lambda customer: customer)


def test_a_sleeping_worker_learns_of_a_new_schedule_and_fires_it_on_time(dsn: str, db: DB) -> None:
    """X-09: it polls once in ten minutes here; hints and what the database told it are all it has."""
    hf = app(dsn)
    with working(hf, poll_min=timedelta(minutes=10), poll_max=timedelta(minutes=10)):
        until(lambda: value(db, "select bool_or(is_asleep) from holdfast.workers"), "its sleep")
        define(db, "soon", at=datetime.now(UTC) + SOON, input='{"region": "eu"}')
        define(db, "cron", cron="0 0 1 1 *")
        until(lambda: ticks(db, "soon"), "the tick")
        until(lambda: listed(db, "cron")["state"] == "active", "the plan")
        until(lambda: value(db, "select state from holdfast.steps") == "done", "what it started")
        late = value(db, "select fired_at - due_at from holdfast.ticks")

    assert timedelta(0) <= late < timedelta(minutes=10)


def test_a_schedule_that_commits_after_a_worker_fell_asleep_wakes_it(dsn: str, db: DB) -> None:
    hf = app(dsn)
    with psycopg.connect(dsn) as other:
        define(other, "soon", at=datetime.now(UTC) + SOON, input='{"region": "eu"}')
        with working(hf, poll_min=timedelta(minutes=10), poll_max=timedelta(minutes=10)):
            until(lambda: value(db, "select bool_or(is_asleep) from holdfast.workers"), "its sleep")
            other.commit()
            until(lambda: ticks(db, "soon"), "the tick")


def test_an_idle_worker_that_no_longer_hears_hints_still_looks(
    dsn: str, db: DB, monkeypatch: pytest.MonkeyPatch
) -> None:
    hf = app(dsn)
    monkeypatch.setattr(ticker, "IDLE_LOOKS_EACH", 0.1)
    with working(hf, poll_max=timedelta(seconds=0.1)) as worker:
        until(lambda: value(db, "select bool_or(is_asleep) from holdfast.workers"), "its sleep")
        monkeypatch.setattr(listener, "aconnect", unreachable)
        db.execute(
            """select pg_terminate_backend(a.pid) from pg_stat_activity a
                where a.datname = current_database() and a.query ilike 'listen %'"""
        )
        until(lambda: not worker._listener.hears, "the loss of its listener")
        define(db, "soon", at=datetime.now(UTC) + SOON, input='{"region": "eu"}')
        until(lambda: ticks(db, "soon"), "the tick")


async def unreachable(dsn: str) -> Any:
    raise psycopg.OperationalError("no more connections")


def test_a_busy_worker_fires_on_time_too(dsn: str, db: DB) -> None:
    hf = app(dsn)
    begun, gate = Event(), Event()

    @hf.task
    def block(ctx: Ctx) -> None:
        begun.set()
        gate.wait(30)

    with working(hf, concurrency=1, listens=False, poll_min=timedelta(seconds=5), poll_max=timedelta(minutes=10)):
        block.start()
        assert read(begun)
        define(db, "soon", at=datetime.now(UTC) + SOON, input='{"region": "eu"}')
        until(lambda: ticks(db, "soon"), "the tick")
        late = value(db, "select fired_at - due_at from holdfast.ticks")
        gate.set()

    assert timedelta(0) <= late < timedelta(seconds=5)  # not with its next poll


def test_three_workers_fire_each_tick_once(dsn: str, db: DB) -> None:
    """X-09: three processes, one firing."""
    hf = app(dsn)
    for number in range(30):
        define(db, f"s{number}", every=timedelta(seconds=1), missed="all", input='{"region": "eu"}')
    with working(hf), working(hf), working(hf):
        until(lambda: value(db, "select count(*) from holdfast.ticks") >= 90, "their ticks")

    fired = value(db, "select count(*) from holdfast.ticks where outcome = 'started'")
    assert fired == value(db, "select count(*) from holdfast.steps") >= 90
    gaps = db.execute(
        """select t.name, t.at from (select t.*, lag(t.at) over (partition by t.name order by t.at) as before
                                       from holdfast.ticks t) t
            where t.at - t.before <> interval '1 second'"""
    ).fetchall()
    assert gaps == []
    assert run(db, calls.violations()) == []


def test_a_worker_whose_look_at_schedules_is_refused_goes_on_with_its_tasks(dsn: str, db: DB) -> None:
    hf = app(dsn)
    define(db, "soon", every=timedelta(hours=1), input='{"region": "eu"}')
    db.execute(
        """create or replace function holdfast.fire_schedules(batch int default 50)
           returns table (looked_at int, waits interval, plans jsonb) language plpgsql as
           $$ begin perform holdfast.refuse('RN005', 'no ticks today', 'wait'); end $$"""
    )
    handle = task(hf).start("eu")
    burst(hf)

    assert handle.status().state == "done"


def test_a_worker_whose_look_at_schedules_times_out_goes_on_with_its_tasks(dsn: str, db: DB) -> None:
    hf = app(dsn)
    define(db, "soon", every=timedelta(hours=1), input='{"region": "eu"}')
    db.execute(
        """create or replace function holdfast.fire_schedules(batch int default 50)
           returns table (looked_at int, waits interval, plans jsonb) language plpgsql as
           $$ begin raise lock_not_available; end $$"""
    )
    handle = task(hf).start("eu")
    worker = burst(hf)

    assert handle.status().state == "done"
    assert worker.meters.errors._value.get() == 0


def test_a_schedule_at_the_end_of_the_calendar_is_broken_and_the_worker_goes_on(dsn: str, db: DB) -> None:
    hf = app(dsn)
    define(db, "never", cron="0 0 1 1 *", input='{"region": "eu"}')
    db.execute("update holdfast.schedules set after_at = '9999-12-31 12:00Z'")
    handle = task(hf).start("eu")
    burst(hf)

    assert handle.status().state == "done"
    assert (listed(db, "never")["state"], "never fires" in listed(db, "never")["broken"]) == ("broken", True)
