"""Limits while workers die, stop or are of an older release: never exceeded, and every slot and token comes back."""

from __future__ import annotations

import json
import shutil
import signal
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from holdfast.kernel import bulk
from scenarios.crew import Crew, Database, until
from scenarios.history import lines
from scenarios.limits import Rule, check_limits, define, most_at_once, overdrawn, record
from scenarios.proof import Proof
from scenarios.stories import kill_and_replace

SHOPS, SLOTS, RATE, BURST = 3, 3, 100, 30
WAITING = """
select standing, limited_by, count(*),
       bool_and(limited_until - holdfast.clock() between interval '25 min' and interval '1 h')
  from holdfast.step_list where standing <> 'over' group by 1, 2 order by 1
"""
PER_HOUR = {"rate": 1, "per": timedelta(hours=1)}  # so slow that what comes back came by a refund


def start_limited(database: Database, kind: str, count: int, *names: str, **arguments: object) -> int:
    """Start tasks under limits; `{}` in a name is a number of each task's own, below that of the shops."""
    tasks = [
        bulk.Start(kind, json.dumps(arguments), limits=[name.format(number % SHOPS) for name in names])
        for number in range(count)
    ]
    with database.connection() as connection:
        return bulk.start_tasks(connection, tasks)


@pytest.mark.both_servers
@pytest.mark.parametrize(
    ("tasks", "kills"), [(240, 4), pytest.param(2_400, 20, marks=[pytest.mark.long, pytest.mark.timeout(300)])]
)
def test_kills_under_limits_exceed_nothing_and_leak_nothing(
    crew: Crew, database: Database, folder: Path, proof: Proof, tasks: int, kills: int
) -> None:
    """R1, A-54: nine slots and a bucket for twenty handlers; the dead give theirs back when their leases end."""
    record(database)
    define(database, "shop:*", concurrency=SLOTS)
    define(database, "api", rate=RATE, per=timedelta(seconds=1), burst=BURST)
    started = sum(
        start_limited(database, kind, tasks // 2, "shop:{}", "api", seconds=0.03) for kind in ("doze", "adeposit")
    )
    alive = {member.name: member for member in (crew.hire("-c", "5") for _ in range(4))}
    share = tasks // (kills + 1)
    for number in range(kills):
        until(lambda: database.count("succeeded") >= number * share, f"{number * share} were done")  # noqa: B023
        kill_and_replace(crew, database, alive, proof.chance)
        proof.add(rounds=1, kills=1)

    until(lambda: database.count("succeeded") >= started, "all were done")

    proof.check(database, folder, started=started)
    assert check_limits(database) >= 2 * started
    assert database.count("expired") > 0


def test_what_a_stopping_worker_had_not_begun_gives_slots_and_tokens_back(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R31: it fetched ahead where the limit had room; only what began was paid for."""
    define(database, "api", concurrency=5_000, burst=5_000, **PER_HOUR)
    quick = start_limited(database, "doze", 400, "api")
    worker = crew.hire("-c", "1", lease="60s")
    until(lambda: database.count("succeeded") == quick, "it had reason to take many at a time")
    waiting = start_limited(database, "wait", 50, "api", gate="go")
    until(lambda: sum(database.held_by().values()) > 1, "it fetched ahead")

    worker.send(signal.SIGTERM)
    worker.await_said("worker.draining")
    until(lambda: sum(database.held_by().values()) == 1, "all but the one were handed back")

    assert standing(database, "api") == (1, 5_000 - quick - 1)
    crew.open("go")
    assert worker.exit_code() == 0
    assert standing(database, "api") == (0, 5_000 - quick - 1)
    assert crew.hire("--burst").exit_code() == 0
    assert standing(database, "api") == (0, 5_000 - quick - waiting)
    proof.check(database, folder, started=quick + waiting)


def test_handlers_that_outlast_the_grace_give_their_slots_back_and_have_used_their_tokens(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R31: they may have called the other system already."""
    define(database, "api", concurrency=3, burst=100, **PER_HOUR)
    started = start_limited(database, "wait", 5, "api", gate="go")
    worker = crew.hire(grace="300ms", lease="60s")
    until(lambda: len(lines(folder, "begin")) == 3, "three began")

    worker.send(signal.SIGTERM)

    assert worker.exit_code() == 0
    assert standing(database, "api") == (0, 97)
    crew.open("go")
    assert crew.hire("--burst").exit_code() == 0
    assert standing(database, "api") == (0, 97 - started)
    proof.check(database, folder, started=started)


def standing(database: Database, name: str) -> tuple[int, int]:
    """Tell how many slots of a limit are held, and how many whole tokens it has."""
    ((held, tokens),) = database.rows("select held, floor(tokens)::int from holdfast.limit_list where name = %s", name)
    return held, tokens


def test_a_worker_that_does_not_know_of_limits_obeys_them(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R32: of the release before, it passes no `free`, and names no limits when it defines its kinds."""
    record(database)
    define(database, "api", concurrency=2, rate=100, per=timedelta(seconds=1), burst=10)
    database.rows("select holdfast.define_kind('doze', limits => array['api'], weight => '2')")
    workers = [crew.hire_ready("-c", "5", app="mutant_chores", test_without="limits") for _ in range(2)]

    started = database.start_many("doze", 60, seconds=0.01)
    until(lambda: database.count("succeeded") >= started, "all were done")

    assert [worker.said("worker.error_wait") for worker in workers] == [[], []]
    assert database.rows("select limits, weight from holdfast.kinds where kind = 'doze'") == [(["api"], "2")]
    proof.check(database, folder, started=started)
    assert check_limits(database) >= started
    assert database.value("select sum(charge)::int from public.charged") >= 2 * started


@pytest.mark.skipif(not shutil.which("faketime"), reason="faketime is not installed: `apt-get install faketime`")
def test_workers_whose_clocks_are_an_hour_off_fill_no_bucket_and_end_no_pause(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R16: a token comes per hour, and a pause ends in half an hour, by the database's clock alone."""
    record(database)
    define(database, "api", burst=6, **PER_HOUR)
    database.rows("select holdfast.pause_limit('shop', until => holdfast.clock() + interval '30 min')")
    asleep = "select count(*) from holdfast.worker_list where is_asleep"
    started = start_limited(database, "doze", 10, "api")
    paused = start_limited(database, "doze", 4, "shop")

    for name in ("+1h", "-1h"):
        crew.hire_ready("--name", name, prefix=("faketime", "-f", name))
    until(lambda: database.count("succeeded") == 6 and database.value(asleep) == 2, "both found nothing more to do")

    assert standing(database, "api") == (0, 0)
    assert database.rows(WAITING) == [("limited", "api", 4, True), ("upstream paused", "shop", paused, True)]
    assert len(lines(folder, "begin")) == 6
    proof.check(database, folder, started=started + paused, failed=started + paused - 6)


def test_the_judge_sees_one_lease_too_many_and_one_token_too_early() -> None:
    """A judge that lets everything pass would prove nothing."""
    zero = datetime(2026, 1, 1, tzinfo=UTC)
    second = timedelta(seconds=1)
    rule = Rule(concurrency=None, rate=1, per=second, burst=2)
    exact = [(zero, Fraction(2)), (zero + second, Fraction(1)), (zero + 5 * second, Fraction(2))]
    early = [*exact[:1], (zero + second - timedelta(microseconds=1), Fraction(1))]
    refunded = [(zero, Fraction(2)), (zero, Fraction(-1)), (zero, Fraction(1))]

    assert most_at_once([(zero, zero + second), (zero + second, zero + 2 * second)]) == 1
    assert most_at_once([(zero, zero + 2 * second), (zero + second, zero + 3 * second)]) == 2
    assert [overdrawn(each, rule) <= 0 for each in (exact, early, refunded)] == [True, False, True]
