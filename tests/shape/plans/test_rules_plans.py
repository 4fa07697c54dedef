"""Workers and people read what they need of rule runs and no more, beside many targets that are not admitted.

Counted are the rows and index entries that the server really read (`reading.py`): on a connection that planned while
the tables were empty, on a new one, and after ANALYZE. With `--faults` the run has a million targets, otherwise 20,000.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

import pytest
from psycopg import Connection

from holdfast.models import Fail
from holdfast.rules import reads
from holdfast.testing import Template
from rules.plans import applied, called, claim, define, inputs, preview, rows, settle, work
from shape.plans.reading import counted, stock_connection

pytestmark = [pytest.mark.timeout(600), pytest.mark.scenario("R21")]
DB = Connection[Any]
WARM, NEW, ANALYZED = "planned on empty tables", "new, no statistics", "new, statistics"
REFUSALS = 5_000
BATCH = 50
PAGE = 20
MIDDLE = 10_000  # a target far into the run, by id
PASS_PAGE = 10_000  # targets of a page of a pass
REFUSED = [(f"NO-{number}", "minimum", "below the minimum", "EUR", 400, 320) for number in range(REFUSALS)]
LAST = "select * from rules.rule_targets where rule_run_id = %s and id > %s order by id limit 20"
JUDGED = """
select j.target_id from rules.run_facts f cross join rules.judged_targets(f, %s, null, null, false) j
 where f.run_id = %s
"""
PAGES = """
select (select count(*) from holdfast.run_steps n
         where n.run_id = p.run_id and n.step_id > p.after and n.step_id <= p.last)
  from rules.pass_parts p where p.pass_id = %s order by p.last
"""
SETTLE_HELD = """
select holdfast.settle_steps((
  select coalesce(jsonb_agg(jsonb_build_object('step_id', s.id, 'lease_id', s.lease_id, 'outcome', 'done')), '[]')
    from holdfast.steps s where s.lease_id is not null))
"""
UNDO = "select holdfast.undo_run(%s, 'run_rolled_back')"
ITEMS = [f"SKU-{number}" for number in range(12_000, 12_000 + PAGE)]
READS: dict[str, Callable[[DB, UUID], Sequence[Any]]] = {
    "the first targets": lambda db, run: reads.targets_page(db, run, most=PAGE),
    "later targets": lambda db, run: reads.targets_page(db, run, after=MIDDLE, most=PAGE),
    "targets of a status": lambda db, run: reads.targets_page(db, run, most=PAGE, status="QUEUED"),
    "targets of items": lambda db, run: reads.targets_of_items(db, run, ITEMS),
    "targets by item or number": lambda db, run: [reads.target_of(db, run, item) for item in ITEMS],
    "refusals": lambda db, run: reads.refusals_page(db, run, after=REFUSALS // 2, most=PAGE),
}


@pytest.fixture(scope="module")
def many(request: pytest.FixtureRequest) -> int:
    return 1_000_000 if request.config.getoption("--faults") else 20_000


@pytest.fixture(scope="module")
def crowded(template: Template, many: int) -> Iterator[tuple[str, DB, UUID]]:
    """A DSN, a connection that was used before the load, and a large run: a window of it is due, the rest is not."""
    with template.clone() as dsn, stock_connection(dsn) as warmed:
        for table in (
            "holdfast.steps",
            "holdfast.run_steps",
            "holdfast.runs",
            "rules.target_values",
            "rules.refused_items",
            "rules.ledger",
        ):
            warmed.execute(f"alter table {table} set (autovacuum_enabled = off)")
        define(warmed)
        for number in range(8):
            applied(warmed, preview(warmed, rows(2, first=number * 10))["run_id"])
            work(warmed)
        large = preview(warmed, rows(many, first=1000), REFUSED)["run_id"]
        applied(warmed, large)
        yield dsn, warmed, large


@pytest.fixture(scope="module", params=[WARM, NEW, ANALYZED])
def db(request: pytest.FixtureRequest, crowded: tuple[str, DB, UUID]) -> Iterator[DB]:
    dsn, warmed, _ = crowded
    if request.param == WARM:
        yield warmed
        return
    if request.param == ANALYZED:
        warmed.execute("analyze")
    with stock_connection(dsn) as connection:
        yield connection


def finish(db: DB, count: int) -> None:
    """Apply so many targets."""
    settle(db, claim(db, batch=count))


def test_a_worker_reads_its_batch_and_not_the_run(db: DB) -> None:
    """Claim, values, settle and ledger: with thousands of targets that are not admitted"""
    claim(db, batch=1)
    steps, claimed = counted(db, lambda: claim(db, batch=BATCH))
    _, read = counted(db, lambda: inputs(db, steps))
    _, settled = counted(db, lambda: settle(db, steps))

    assert len(steps) == BATCH
    for one in (claimed, read, settled):
        assert one.rows.total() < 40 * BATCH, one.most


def test_a_small_run_reads_itself_and_not_the_large_one(db: DB) -> None:
    """Preview, apply, retry: beside a run of the same channel that is open"""
    answer, taken = counted(db, lambda: preview(db, rows(5, first=900), channel="shop"))
    _, begun = counted(db, lambda: applied(db, answer["run_id"]))
    db.execute("select holdfast.stop_run(%s)", [str(answer["run_id"])])
    _, retried = counted(db, lambda: called(db, "retry_all", run_id=answer["run_id"]))
    db.execute("select holdfast.stop_run(%s)", [str(answer["run_id"])])

    for one in (taken, begun, retried):
        assert one.rows.total() < 1500, one.most


def test_a_retry_of_some_targets_reads_those_and_not_the_run(db: DB, crowded: tuple[str, DB, UUID]) -> None:
    """A list of targets is looked up, not compared with each target: that would be quadratic"""
    page = [target.id for target in reads.targets_of_items(db, crowded[2], ITEMS)]
    judged, read = counted(db, lambda: db.execute(JUDGED, [page, crowded[2]]).fetchall())

    assert [target for (target,) in judged] == page
    assert read.rows.total() < 60 * PAGE, read.most


def test_a_pass_is_planned_by_its_pages_and_not_by_its_targets(
    db: DB, crowded: tuple[str, DB, UUID], many: int
) -> None:
    """The settle that ends a run plans three passes, and holds the run's row"""
    finish(db, 1)
    with db.transaction(force_rollback=True):
        (answer,), read = counted(db, lambda: called(db, "reconcile", run_id=crowded[2]))
        pages = [count for (count,) in db.execute(PAGES, [answer["pass_id"]])]

    assert pages == [PASS_PAGE] * (many // PASS_PAGE)
    assert read.rows["run_steps_pkey"] < 10 * len(pages), read.most
    assert read.rows.total() < 460 + 20 * len(pages), read.most


def test_the_last_target_of_a_rollback_reads_what_failed_and_not_the_run(db: DB, crowded: tuple[str, DB, UUID]) -> None:
    """The settle that undoes the last target moves the run, and takes its failed targets from the dead letter"""
    with db.transaction(force_rollback=True):
        done, failed = claim(db, batch=2)
        settle(db, [done])
        settle(db, [failed], Fail({"message": "refused", "class": "VALIDATION"}))
        db.execute(SETTLE_HELD)
        db.execute("select holdfast.stop_run(%s)", [str(crowded[2])])
        db.execute("select holdfast.set_actor('system', 'rollback', 'rolled back')")
        (moved,), read = counted(db, lambda: db.execute(UNDO, [crowded[2]]).fetchall())
        resolved = db.execute("select step_id from holdfast.resolutions").fetchall()

    assert (moved, resolved) == ((True,), [(failed.step_id,)])
    assert read.rows.total() < 100, read.most


@pytest.mark.parametrize("name", READS)
def test_a_read_for_people_is_bounded(db: DB, crowded: tuple[str, DB, UUID], name: str) -> None:
    """A page of targets or refusals of a large run, or some of its items: also without statistics"""
    page, read = counted(db, lambda: READS[name](db, crowded[2]))

    assert len(page) == PAGE
    assert read.rows.total() < 60 * PAGE, read.most


def test_a_page_of_the_view_reads_a_page(crowded: tuple[str, DB, UUID]) -> None:
    """With statistics: a view has no settings of its own"""
    dsn, warmed, large = crowded
    warmed.execute("analyze holdfast.steps, holdfast.run_steps, rules.target_values, rules.run_facts, rules.ledger")
    with stock_connection(dsn) as db:
        page, read = counted(db, lambda: db.execute(LAST, [large, 0]).fetchall())

    assert len(page) == PAGE
    assert read.rows.total() < 1000, read.most


def test_a_paused_run_at_the_head_of_the_queue_is_passed_once(crowded: tuple[str, DB, UUID]) -> None:
    """The first claim parks what it meets of the window, and the next one meets nothing of the run"""
    _, db, large = crowded
    with db.transaction(force_rollback=True):
        small = preview(db, rows(2 * BATCH, first=2_000_000))["run_id"]
        applied(db, small)
        db.execute("select holdfast.pause_run(%s)", [str(large)])
        reads_of = []
        for _ in range(2):
            steps, read = counted(db, lambda: claim(db, batch=BATCH))
            assert [step.run_id for step in steps] == [small] * BATCH
            reads_of.append(read)

    window = 1000  # targets of the run that are due
    assert reads_of[0].rows.total() < 20 * window + 40 * BATCH, reads_of[0].most
    assert reads_of[1].rows.total() < 40 * BATCH, reads_of[1].most
