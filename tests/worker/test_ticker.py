"""When a worker looks for due ticks: at the next one while it sleeps, and once per second while it is busy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from holdfast.connections.worker import WorkerConnection
from holdfast.kernel import schedule_calls
from holdfast.kernel.db import run
from holdfast.testing import Clock
from holdfast.worker import ticker
from holdfast.worker.options import Options
from holdfast.worker.ticker import Ticker
from kernel.schedules import at, define, ticks
from kernel.steps import DB

pytestmark = pytest.mark.one_server
HOUR = 3600.0


class Seconds:
    """The monotonic clock of a worker; it stands until the test moves it."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    seconds = Seconds()
    monkeypatch.setattr(ticker, "time", seconds)
    return seconds


@contextmanager
def looking(dsn: str) -> Iterator[tuple[asyncio.Runner, Ticker]]:
    connection = WorkerConnection(dsn, timedelta(seconds=30))
    with asyncio.Runner() as runner:
        yield runner, Ticker(connection, Options(), lambda: None)
        runner.run(connection.close())


@pytest.mark.parametrize(
    ("is_busy", "is_asleep", "after"),
    [(True, False, 1.0), (False, False, 30.0), (False, True, HOUR)],
    ids=["busy", "idle, no hints", "asleep"],
)
def test_a_worker_looks_again_after_a_second_or_when_the_next_tick_comes(
    dsn: str, db: DB, clock: Clock, seconds: Seconds, is_busy: bool, is_asleep: bool, after: float
) -> None:
    """X-09: so a tick that a busy worker was not told of is fired within a second, and an idle one asks nothing."""
    clock.set(at("03-01 00:00"))
    define(db, "hourly", every=timedelta(hours=1))
    with looking(dsn) as (runner, each):

        def look() -> None:
            runner.run(each.look_if_due(is_busy=is_busy, is_asleep=is_asleep))

        look()
        clock.set(at("03-01 01:00"))  # it comes earlier than the worker was told
        seconds.now += after - 0.001
        look()
        assert ticks(db, "hourly") == []
        seconds.now += 0.001
        look()

    assert ticks(db, "hourly") == [(at("03-01 01:00"), "started")]


def test_a_sleeping_worker_sleeps_until_the_next_tick(dsn: str, db: DB, clock: Clock, seconds: Seconds) -> None:
    """Also if it is told of an earlier one meanwhile."""
    clock.set(at("03-01 00:00"))
    define(db, "hourly", every=timedelta(hours=1))
    with looking(dsn) as (runner, each):
        runner.run(each.look_if_due(is_busy=False, is_asleep=False))
        assert each.left(is_asleep=True) == HOUR
        each.look_in(timedelta(seconds=90))
        assert each.left(is_asleep=True) == 90
        each.look_now()
        assert each.left(is_asleep=True) == 0
        run(db, schedule_calls.pause_schedule("hourly"))
        runner.run(each.look_if_due(is_busy=False, is_asleep=False))
        assert each.left(is_asleep=True) == float("inf")
