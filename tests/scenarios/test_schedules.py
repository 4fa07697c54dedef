"""Schedules under kills, on days when clocks change, and with workers whose own clocks are wrong."""

from __future__ import annotations

import shutil
import signal
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from holdfast.kernel import calls
from holdfast.kernel.db import run
from kernel.schedules import define, ticks
from scenarios.cells import SCHEDULING
from scenarios.crew import Crew, Database, Member, until
from scenarios.history import lines
from scenarios.proof import Proof

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
APP = {"app": "ticking"}
HINT = "select pg_notify('holdfast', '')"
STARTED = "select count(*) from holdfast.ticks where outcome = 'started'"
HANDLED = """
select bool_and(next_at > holdfast.clock()) from holdfast.schedule_list where name in ('fixed', 'hourly', 'minutes')
"""
JUMP = "update holdfast_test.dials set stands_at = null, ahead = %s - pg_catalog.clock_timestamp()"
GAPS = """
select t.name, t.at from (select t.*, lag(t.at) over (partition by t.name order by t.at) as before
                            from holdfast.ticks t) t
 where t.name = 'steady' and t.at - t.before <> interval '1 second'
"""
# In one statement: workers go on firing meanwhile.
COUNTS = """
select (select count(*) from holdfast.journal where actor_kind = 'scheduler'), (select count(*) from holdfast.steps),
       array(select unnest(t.ids) from holdfast.ticks t)
"""
# The clock's last jump left leases behind that ended long ago: of the worker that was killed before it.
RESCUED = "select not exists (select from holdfast.steps where lease_until < holdfast.clock() - interval '1 minute')"
KEEP_ALL = "update holdfast.retention_sweep set begins_at = 'infinity'"  # the clock jumps over months


def sound(database: Database, proof: Proof) -> None:
    """Each tick started one task, and nothing else did."""
    with database.connection() as connection:
        broken = run(connection, calls.violations())
    ((started, steps, ids),) = database.rows(COUNTS)
    proof.add(lost=len(broken), twice=len(ids) - len(set(ids)))
    assert broken == []
    assert len(ids) == len(set(ids)) == started == steps


def define_in(database: Database, name: str, **options: Any) -> None:
    with database.connection() as connection:
        define(connection, name, **{"target": "tick", **options})


@pytest.mark.long
def test_a_worker_killed_at_any_place_of_firing_and_planning_fires_each_tick_once(
    crew: Crew, database: Database, proof: Proof
) -> None:
    """R2, R30: before it is sent, and after its answer; the next one goes on."""
    define_in(database, "steady", every=SECOND, missed="all")
    for number, cell in enumerate(SCHEDULING):
        define_in(database, f"new{number}", cron="* * * * *")
        member = crew.hire("--name", cell.name, **APP, failpoint=cell.arms)
        assert member.exit_code() == -signal.SIGKILL, member.text()
    crew.hire(**APP)
    fired = database.value(STARTED)
    until(lambda: database.value(STARTED) > fired + 3, "the last one fired")

    active = "select count(*) from holdfast.schedule_list where state = 'active'"
    until(lambda: database.value(active) == len(SCHEDULING) + 2, "all were planned")
    assert database.rows(GAPS) == []
    proof.add(rounds=len(SCHEDULING), kills=len(SCHEDULING))
    sound(database, proof)


def test_a_worker_that_has_to_stop_hands_back_the_task_of_a_tick_and_the_next_one_goes_on(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R31: the task is charged nothing, no tick is lost while nobody runs, and each starts one task."""
    define_in(database, "steady", target="wait", input='{"gate": "go"}', every=SECOND, missed="all")
    worker = crew.hire(grace="300ms", lease="60s")
    until(lambda: lines(folder, "begin"), "a tick's task began")
    worker.send(signal.SIGTERM)

    assert worker.exit_code() == 0
    first = int(database.value("select ids[1] from holdfast.ticks order by at limit 1"))
    row = database.step(first)
    assert (row["state"], row["failures"], database.story(first)) == ("pending", 0, ["created", "claimed", "released"])
    crew.open("go")
    fired = database.value(STARTED)
    crew.hire()
    until(lambda: database.value(STARTED) > fired + 1, "the next one fired")
    until(lambda: database.story(first)[-1] == "succeeded", "it did what was handed back")
    assert database.rows(GAPS) == []
    proof.add(rounds=1)
    sound(database, proof)


def night(spring: str, autumn: str) -> list[datetime]:
    """Every half hour around the two changes of clocks in Berlin, and an outage of ten minutes after each."""
    found = []
    for day in (spring, autumn):
        midnight = datetime.fromisoformat(day).replace(tzinfo=UTC)
        found += [midnight + timedelta(minutes=30 * half) for half in range(1, 5)]
        found.append(found[-1] + timedelta(minutes=10, seconds=30))
    return found


def test_three_schedulers_killed_in_turn_fire_each_tick_of_the_nights_when_clocks_change_once(
    crew: Crew, database: Database, proof: Proof
) -> None:
    """R30, X-09: 02:30 in Berlin is 01:00 UTC in spring, where it is left out, and the first of two in autumn."""
    with database.connection() as connection:
        connection.execute(KEEP_ALL)
        connection.execute(JUMP, [datetime(2027, 3, 28, tzinfo=UTC)])
        define(connection, "fixed", target="tick", cron="30 2 * * *", timezone="Europe/Berlin")
        define(connection, "hourly", target="tick", cron="30 * * * *", timezone="Europe/Berlin", missed="one")
        define(connection, "minutes", target="tick", every=timedelta(minutes=1), missed="skip", overlap="allow")
        crews: list[Member] = [crew.hire_ready(**APP) for _ in range(3)]
        turn = cycle(range(3))
        for number, moment in enumerate(night("2027-03-28", "2027-10-31")):
            connection.execute(JUMP, [moment])
            connection.execute(HINT)
            if number % 3 == 2:
                dying = next(turn)
                crews[dying].kill()
                proof.add(kills=1)
                crews[dying] = crew.hire(**APP)
            until(partial(database.value, HANDLED), f"{moment} was handled")
        until(partial(database.value, RESCUED), "what the last one killed had held was rescued")
        fixed, hourly = ticks(connection, "fixed"), ticks(connection, "hourly")
        proof.add(rounds=1)

    assert [tick for tick, outcome in fixed if outcome == "started" and tick.day in {28, 31}] == [
        datetime(2027, 3, 28, 1, tzinfo=UTC),  # 03:00, the end of the gap
        datetime(2027, 10, 31, 0, 30, tzinfo=UTC),  # the first 02:30
    ]
    days = {(3, 28), (10, 31)}
    on_both = [tick for tick, outcome in hourly if outcome == "started" and (tick.month, tick.day) in days]
    assert on_both == [
        datetime(2027, month, day, hour, 30, tzinfo=UTC) for month, day in ((3, 28), (10, 31)) for hour in (0, 1)
    ]
    sound(database, proof)


@pytest.mark.skipif(not shutil.which("faketime"), reason="faketime is not installed: `apt-get install faketime`")
def test_workers_whose_clocks_are_an_hour_off_fire_by_the_databases(
    crew: Crew, database: Database, proof: Proof
) -> None:
    """R16: a cron too, whose ticks a worker computes."""
    now = database.value("select holdfast.clock()")
    define_in(database, "later", at=now + timedelta(minutes=30))
    define_in(database, "hourly", cron="* * * * *", starts_at=now + timedelta(minutes=30))
    for name in ("+1h", "-1h"):
        crew.hire_ready("--name", name, prefix=("faketime", "-f", name), **APP)
    define_in(database, "soon", at=database.value("select holdfast.clock()") + 2 * SECOND)
    until(lambda: database.value("select count(*) from holdfast.ticks where name = 'soon'"), "it was fired")
    until(lambda: database.value("select count(*) from holdfast.ticks where name = 'of_the_app'") > 1, "the app's too")

    late = database.value("select fired_at - due_at from holdfast.ticks where name = 'soon'")
    assert timedelta(0) <= late < HOUR / 2  # by the clock of either worker it would have been an hour off
    assert database.value("select count(*) from holdfast.ticks where name in ('later', 'hourly')") == 0
    next_at = database.value("select next_at from holdfast.schedule_list where name = 'hourly'")
    assert timedelta(minutes=29) < next_at - now <= timedelta(minutes=31)
    sound(database, proof)
