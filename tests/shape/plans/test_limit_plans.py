"""Claims and settles under limits read what their batch needs, however many steps are parked and whatever is known.

Counted as in test_plans.py, on a connection that planned while the tables were empty, on a new one, and after ANALYZE,
with JIT on.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest

from holdfast.kernel import calls, limit_calls
from holdfast.kernel.db import run
from holdfast.kernel.query import query
from holdfast.models import ClaimedStep, Done, Settlement
from holdfast.reads import limits
from holdfast.testing import Template
from shape.plans import crowd
from shape.plans.crowd import DB
from shape.plans.reading import Reading, counted, reading, stock_connection

WARM, NEW, ANALYZED = "planned on empty tables", "new, no statistics", "new, statistics"
pytestmark = [pytest.mark.timeout(600), pytest.mark.scenario("R19")]
PARKED, PARKED_UNDER_FAULTS, KEYS = 30_000, 100_000, 500
STAGE = """
insert into pg_temp.staged_steps (kind, queue, limits)
select 'noop', %(queue)s, case when %(keys)s > 0 then array['key:' || n %% %(keys)s] else %(limits)s::text[] end
  from generate_series(1, %(amount)s) n
"""


@pytest.fixture(scope="module")
def crowded(template: Template, request: pytest.FixtureRequest) -> Iterator[tuple[str, DB]]:
    """A DSN, and a connection that was used before the load."""
    parked = PARKED_UNDER_FAULTS if request.config.getoption("faults") else PARKED
    with template.clone() as dsn, stock_connection(dsn) as warmed:
        crowd.furnish(warmed)
        run(warmed, limit_calls.define_limit("shut", concurrency=0))
        run(warmed, limit_calls.define_limit("key:*", concurrency=1, rate=10**6, per=timedelta(seconds=1)))
        for _ in range(8):
            assert run(warmed, calls.claim_steps("w", "keys", batch=100)) == []
            run(warmed, calls.settle_steps([Settlement(1, 1, Done())]))
        with psycopg.connect(dsn, autocommit=True) as loader:
            stage(loader, "shut", parked, limits=["shut"])
            stage(loader, "free", 4000)
            stage(loader, "keys", 20 * KEYS, keys=KEYS)
            while loader.execute(
                "select exists (select from holdfast.steps where due_at is not null and queue = 'shut')"
            ).fetchone() == (True,):
                run(loader, calls.claim_steps("parker", "shut", batch=1000))
        yield dsn, warmed


def stage(db: DB, queue: str, amount: int, *, keys: int = 0, limits: list[str] | None = None) -> None:
    with db.transaction():
        run(db, calls.stage_steps())
        db.execute(STAGE, {"queue": queue, "keys": keys, "limits": limits, "amount": amount})
        run(db, calls.take_staged("work.task"))


@pytest.fixture(scope="module", params=[WARM, NEW, ANALYZED])
def db(request: pytest.FixtureRequest, crowded: tuple[str, DB]) -> Iterator[DB]:
    dsn, warmed = crowded
    if request.param == WARM:
        yield warmed
        return
    if request.param == ANALYZED:
        with psycopg.connect(dsn, autocommit=True) as analyst:
            analyst.execute("vacuum (analyze) holdfast.steps, holdfast.limit_states")
    with stock_connection(dsn) as connection:
        yield connection


def claim(db: DB, queue: str, batch: int) -> tuple[list[ClaimedStep], Reading]:
    return reading(db, calls.claim_steps("w", queue, batch=batch))


def done(db: DB, steps: list[ClaimedStep]) -> Reading:
    settled, read = reading(db, calls.settle_steps([Settlement(s.step_id, s.lease_id, Done()) for s in steps]))
    assert len(settled) == len(steps)
    return read


def assert_few(read: Reading, rows: int) -> None:
    assert read.rows.total() <= rows, f"rows read: {read.most}"


def test_a_claim_that_finds_a_shut_limit_reads_nothing_of_its_queue(db: DB) -> None:
    """R19: beside 30,000 parked steps, with --faults 100,000."""
    steps, read = claim(db, "shut", 100)

    assert steps == []
    assert_few(read, 100 + 4 * KEYS)  # limits of another queue may be open


def test_free_steps_are_claimed_in_proportion_beside_parked_ones(db: DB) -> None:
    claim(db, "free", 50)  # passes over what an earlier test left dead in the index
    for batch in (100, 300):
        steps, read = claim(db, "free", batch)

        assert len(steps) == batch
        assert_few(read, 12 * batch + 900)
        assert_few(done(db, steps), 6 * batch + 300)


def test_heads_of_many_limits_are_pulled_in_proportion(db: DB) -> None:
    held: list[ClaimedStep] = []
    for _ in range(30):  # until each key has its holder, and all else is parked
        steps, _ = claim(db, "keys", KEYS)
        held += steps
        if len(held) == KEYS and not steps:
            break
    assert len(held) == KEYS
    assert_few(done(db, held[:100]), 30 * 100 + 500)

    steps, read = claim(db, "keys", 100)

    assert len(steps) == 100
    assert_few(read, 100 * 100 + 1000)
    done(db, [*steps, *held[100:]])


def test_a_sleeper_learns_when_a_limit_opens_without_reading_its_queue(db: DB) -> None:
    _, read = reading(db, calls.mark_asleep("w", "shut"))

    assert_few(read, 100)


def test_a_list_of_limits_reads_the_heads_of_their_queues(db: DB) -> None:
    """R19: since when the oldest step waits is not looked for among all that are parked."""
    found, read = counted(db, lambda: query(db, limits.limits("shut")))

    assert [(row.name, row.parked >= PARKED, row.oldest_parked_at is not None) for row in found] == [
        ("shut", True, True)
    ]
    assert_few(read, 100 + 6 * KEYS)
