"""Claims and settles beside a large run read their batch and a lot, not the steps that are not admitted.

With `--faults` the run has a million steps, otherwise some thousands.
"""

from __future__ import annotations

from typing import Any

import pytest
from psycopg import Connection

from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Done, Fail, Outcome, Release, Settlement
from kernel.plans import begun, draft, halt, install, queue
from kernel.steps import claim, stage
from shape.plans.reading import Reading, reading

pytestmark = pytest.mark.scenario("R21")
DB = Connection[Any]
BATCH = 50
WINDOW = 400


@pytest.fixture
def steps(request: pytest.FixtureRequest) -> int:
    return 1_000_000 if request.config.getoption("--faults") else 8_000


def assert_few(read: Reading, most: int) -> None:
    assert sum(count for name, count in read.rows.items() if name.startswith(("steps", "run_steps"))) <= most, read.most


@pytest.mark.parametrize("is_analyzed", [False, True], ids=["no statistics", "statistics"])
@pytest.mark.parametrize("outcome", [Done(), Fail("no"), Release()], ids=["done", "fail", "release"])
def test_a_batch_beside_a_million_steps_reads_its_batch(
    db: DB, steps: int, outcome: Outcome, is_analyzed: bool
) -> None:
    """A connection keeps its plans: those of the first claim have no statistics, or those of the first steps."""
    install(db, WINDOW)
    run_id = draft(db, steps)
    for job in (lambda: None, lambda: queue(db, run_id), lambda: claim(db, batch=BATCH)):
        job()
        if is_analyzed:
            db.execute("analyze holdfast.steps, holdfast.run_steps, holdfast.runs")

    claimed, read = reading(db, calls.claim_steps("w", batch=BATCH))
    assert len(claimed) == BATCH
    assert_few(read, 12 * BATCH)
    settled, read = reading(db, calls.settle_steps([Settlement(s.step_id, s.lease_id, outcome) for s in claimed]))
    assert len(settled) == BATCH
    assert_few(read, 16 * BATCH)


def test_what_earlier_tests_left_is_not_counted(request: pytest.FixtureRequest) -> None:
    """Index entries of rows that a test deleted stay until somebody walks over them, and a scan counts them."""
    assert request.node.get_closest_marker("own_database")


def test_a_claim_that_admits_a_lot_reads_the_lot(db: DB, steps: int) -> None:
    install(db, WINDOW)
    begun(db, steps)
    for _ in range(4):
        taken = claim(db, batch=BATCH)
        run(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, Done()) for step in taken]))

    claimed, read = reading(db, calls.claim_steps("w", batch=BATCH))

    assert len(claimed) == BATCH
    assert db.execute("select live from holdfast.runs").fetchone() == (WINDOW,)
    assert_few(read, 12 * BATCH + 12 * 1000)


def test_a_paused_run_in_front_is_passed_once(db: DB, steps: int) -> None:
    install(db, WINDOW)
    run_id = begun(db, steps)
    stage(db, [("mail", "{}")] * (3 * BATCH))
    halt(db, "pause", run_id)

    for most in (20 * WINDOW + 40 * BATCH, 12 * BATCH):  # the first claim parks what it meets, the next meets nothing
        claimed, read = reading(db, calls.claim_steps("w", batch=BATCH))
        assert {step.kind for step in claimed} == {"mail"}
        assert_few(read, most)


def test_queue_pause_resume_and_stop_do_not_read_the_run(db: DB, steps: int) -> None:
    install(db, WINDOW)
    run_id = draft(db, steps)
    queue(db, run_id)

    for call in (calls.pause_run, calls.resume_run, calls.stop_run):
        _, read = reading(db, call(str(run_id)))
        assert_few(read, 12 * WINDOW)
