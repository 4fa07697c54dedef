"""Claim and settle read what their batch needs and no more, whatever else stands there and whatever the planner knows.

Counted are the rows, index entries and blocks that the server really read (`reading.py`), in a database full of
steps (`crowd.py`), on a connection that planned while it was empty, on a new one, and after ANALYZE. No plan
may look so expensive that a server with JIT compiles it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from holdfast.embedded import locks
from holdfast.kernel import bulk, calls
from holdfast.kernel.bulk import Start
from holdfast.kernel.db import run
from holdfast.models import ClaimedStep, Done, Fail, Outcome, Release, Retry, Settlement
from holdfast.testing import Template
from shape.plans import crowd
from shape.plans.crowd import DB, Sizes
from shape.plans.reading import Reading, counted, executed_plans, reading, stock_connection

WARM, NEW, ANALYZED = "planned on empty tables", "new, no statistics", "new, statistics"
pytestmark = [
    pytest.mark.timeout(600),  # the load is part of the first test, and machines are busy
    pytest.mark.scenario("R21"),
]
EMPTY_POLL = 60  # rows that a claim reads which finds nothing, wherever it looks


@pytest.fixture(scope="module")
def sizes(request: pytest.FixtureRequest) -> Sizes:
    return Sizes(share=1 if request.config.getoption("faults") else 4)


@pytest.fixture(scope="module")
def crowded(template: Template, sizes: Sizes) -> Iterator[tuple[str, DB]]:
    """A DSN, and a connection that was used before the load."""
    with template.clone() as dsn, stock_connection(dsn) as warmed:
        crowd.furnish(warmed)
        crowd.warm(warmed)
        with psycopg.connect(dsn, autocommit=True) as loader:
            crowd.load(loader, sizes)
        yield dsn, warmed


@pytest.fixture(scope="module", params=[WARM, NEW, ANALYZED])
def db(request: pytest.FixtureRequest, crowded: tuple[str, DB]) -> Iterator[DB]:
    dsn, warmed = crowded
    if request.param == WARM:
        yield warmed
        return
    if request.param == ANALYZED:
        with psycopg.connect(dsn, autocommit=True) as analyst:
            crowd.analyze(analyst)
    with stock_connection(dsn) as connection:
        yield connection


def claim(db: DB, queue: str, batch: int, kinds: list[str] | None = None) -> tuple[list[ClaimedStep], Reading]:
    return reading(db, calls.claim_steps("w", queue, kinds, batch=batch))


def settle(db: DB, steps: list[ClaimedStep], outcome: Outcome) -> Reading:
    settled, read = reading(db, calls.settle_steps([Settlement(s.step_id, s.lease_id, outcome) for s in steps]))
    assert len(settled) == len(steps)
    return read


def assert_at_most(read: Reading, *, rows: int, blocks: int) -> None:
    assert read.rows.total() <= rows, f"rows read: {read.most}"
    assert read.blocks.total() <= blocks, f"blocks read: {read.blocks.most_common(6)}"


def test_claim_and_settle_read_in_proportion_to_the_batch(db: DB) -> None:
    """R21, benchmarks 5.1 and 5.3: beside 200 000 due, 200 000 finished and 100 000 held steps."""
    claim(db, crowd.BULK, 50)  # what an earlier test left dead in the index is passed over here
    dead = 50  # a claim that begins anew, as it does each second, passes over what the ones before it left
    for batch in (100, 200, 400, 800, 500):
        steps, claimed = claim(db, crowd.BULK, batch)

        assert len(steps) == batch
        assert_at_most(claimed, rows=6 * batch + dead + EMPTY_POLL, blocks=25 * batch + dead + 300)
        dead += batch
        assert_at_most(settle(db, steps, Done()), rows=4 * batch + EMPTY_POLL, blocks=25 * batch + 300)


def test_a_backlog_is_counted_by_index_up_to_its_limit(db: DB) -> None:
    """W-56: of 200 000 due steps."""
    run(db, calls.enlist_worker("counting", [crowd.BULK]))

    (found,), read = reading(db, calls.measured_upkeep("counting", batch=1, most=1000))

    assert found.backlog == {crowd.BULK: 1000}
    assert_at_most(read, rows=5 * 1000 + 500, blocks=8000)  # entries that earlier claims left dead are walked past


@pytest.mark.parametrize("outcome", [Retry("again"), Fail("bad")])
def test_other_outcomes_settle_in_proportion_too(db: DB, outcome: Outcome) -> None:
    """Each looks up its policy and its moves; a machine has a dozen of those."""
    for batch in (100, 500):
        steps, _ = claim(db, crowd.BULK, batch)

        assert_at_most(settle(db, steps, outcome), rows=80 * batch + EMPTY_POLL, blocks=80 * batch + 500)


def test_a_batch_of_one_run_does_not_read_the_run(db: DB) -> None:
    """A run of 100 000 steps costs its batch and one row of counts."""
    steps, claimed = claim(db, crowd.ONE_RUN, 500)

    assert len(steps) == 500
    assert_at_most(claimed, rows=6 * 500 + EMPTY_POLL, blocks=25 * 500 + 300)
    assert_at_most(settle(db, steps, Done()), rows=5 * 500 + EMPTY_POLL, blocks=40 * 500 + 300)


def test_freed_children_are_found_by_their_parents(db: DB) -> None:
    """500 diamonds' heads free 2 500 steps in a table of 40 000 edges, for as many runs."""
    steps, claimed = claim(db, crowd.DIAMONDS, 500)

    assert len(steps) == 500
    assert_at_most(claimed, rows=12 * 500 + EMPTY_POLL, blocks=50 * 500 + 300)
    assert_at_most(settle(db, steps, Done()), rows=20 * 500 + EMPTY_POLL, blocks=150 * 500 + 500)


def test_a_start_reads_in_proportion_to_its_plan(db: DB) -> None:
    """T-30: steps beside each other with a join, in a table of 1.8 million steps and 40 000 edges."""
    for width in (10, 100, 1000):
        names = [f"step {number}" for number in range(width)]
        plan = [{"kind": "noop", "name": name, "queue": "fans"} for name in names]
        last = {"kind": "noop", "name": "last", "queue": "fans", "after": names}

        _, read = reading(db, calls.start_run("flow.task", "fan", "flow.step", steps=[*plan, last]))

        assert_at_most(read, rows=12 * width + 300, blocks=60 * width + 1500)


def test_steps_added_to_a_wide_run_do_not_read_the_run(db: DB) -> None:
    """T-30: a step of 2 000 that plans three more reads these and what waits for it."""
    queue = f"wide {uuid4()}"
    names = [f"step {number}" for number in range(2000)]
    steps = [{"kind": "noop", "name": name, "queue": queue} for name in names]
    run(db, calls.start_run("flow.task", "wide", "flow.step", steps=[*steps, {"kind": "noop", "after": names}]))
    ((held,), _) = claim(db, queue, 1)
    more = [{"kind": "noop", "name": f"more {number}", "queue": queue} for number in range(3)]
    more.append({"kind": "noop", "name": "last of more", "queue": queue, "after": ["more 0", "step 7"]})

    _, read = reading(db, calls.add_awaited(held.step_id, held.lease_id, more))

    assert_at_most(read, rows=200, blocks=1500)


def test_a_handle_reads_its_own_run_and_step_and_no_other(db: DB) -> None:
    """R21: status and story of a run of 20 steps, one of which failed, and of that step."""
    queue = f"handled {uuid4()}"
    plan = [{"kind": "noop", "name": f"step {number}", "queue": queue} for number in range(20)]
    (run_id,) = run(db, calls.start_run("flow.task", "handled", "flow.step", steps=plan))
    steps, _ = claim(db, queue, 20)
    settle(db, steps[:1], Fail())
    settle(db, steps[1:], Done())

    status, of_run = reading(db, calls.run_status([run_id]))
    events, story = reading(db, calls.run_events(run_id))
    _, of_step = reading(db, calls.step_status([steps[0].step_id]))
    _, own = reading(db, calls.step_events(steps[0].step_id))

    assert (status[0].step, status[0].failed) == ("step 0", 1)
    assert len(events) >= 2 * 20 + 2
    for read in (of_run, story):
        assert_at_most(read, rows=12 * 20 + 60, blocks=60 * 20 + 300)
    for read in (of_step, own):
        assert_at_most(read, rows=60, blocks=300)


def test_an_empty_poll_does_not_read_what_is_due_tomorrow(db: DB) -> None:
    """Benchmarks 5.4: a million steps, of two priorities."""
    steps, read = claim(db, crowd.TOMORROW, 500)

    assert steps == []
    assert_at_most(read, rows=EMPTY_POLL, blocks=150)


def test_what_is_due_is_found_among_a_million_steps_of_tomorrow(db: DB) -> None:
    """Of a lower priority than half of them, and in a table of five other queues."""
    run(db, calls.start_tasks([{"name": "noop", "queue": crowd.TOMORROW}] * 100))

    steps, read = claim(db, crowd.TOMORROW, 500)

    assert len(steps) == 100
    assert_at_most(read, rows=6 * 100 + EMPTY_POLL, blocks=25 * 100 + 300)
    settle(db, steps, Done())
    claim(db, crowd.TOMORROW, 500)  # passes over what the claim left dead in the index


@pytest.mark.parametrize("queue", [crowd.BULK, crowd.ONE_RUN])
def test_leases_are_renewed_by_primary_key(db: DB, queue: str) -> None:
    """Beside 100 000 that others hold; and a run's counts do not change, so it is not counted."""
    steps, _ = claim(db, queue, 500)
    ids = {"lease_ids": [s.lease_id for s in steps], "step_ids": [s.step_id for s in steps]}

    renewed, read = reading(db, calls.renew_leases("w", lease=timedelta(minutes=9), **ids))

    assert len(renewed) == 500
    assert_at_most(read, rows=4 * 500 + EMPTY_POLL, blocks=25 * 500 + 300)


def test_a_rescue_reads_what_ran_out_and_no_more(db: DB) -> None:
    """100 000 steps are held, ten of them past their lease."""
    crowd.let_leases_run_out(db, 10)

    rescued, read = reading(db, calls.rescue_steps(batch=100))
    nobody, empty = reading(db, calls.rescue_steps(batch=100))

    assert (len(rescued), nobody) == (10, [])
    assert_at_most(read, rows=80 * 10 + EMPTY_POLL, blocks=100 * 10 + 500)
    assert_at_most(empty, rows=EMPTY_POLL, blocks=100)


def test_a_wish_for_one_run_reads_that_run_and_what_is_held(db: DB, sizes: Sizes) -> None:
    """Cancel and retry of a run of three steps wait for who is settling one of them; no other step is read."""
    steps = [{"kind": "noop", "queue": "wishes"}] * 3
    (run_id,) = run(db, calls.start_run("flow.task", "small", "flow.step", steps=steps))
    claimed, _ = claim(db, "wishes", 3)
    settle(db, claimed, Fail("bad"))

    _, retried = reading(db, calls.retry(str(run_id)))
    _, cancelled = reading(db, calls.cancel(str(run_id)))

    for read in (retried, cancelled):
        of_held = read.rows.pop("steps_held")
        assert of_held < sizes.some + 50_000  # and what other tests left dead in the index
        assert_at_most(read, rows=1000, blocks=of_held + 2000)


def test_steps_that_nobody_serves_are_passed_once(db: DB, sizes: Sizes) -> None:
    """Benchmarks 5.5, W-25: 200 000 stand before 500 that are served; parked, they are not met again."""
    unserved, window = sizes.many, 20 * 1000
    reads: list[Reading] = []
    steps: list[ClaimedStep] = []
    while not steps:
        steps, read = claim(db, crowd.UNSERVED, 500, ["served"])
        reads.append(read)
        assert len(reads) <= unserved / window + 1, "the served steps were not reached"
    polls: list[tuple[list[ClaimedStep], Reading]] = []

    def reads_little() -> bool:
        # One that has no place yet looks from the beginning, and marks what it passes over as dead: then it matters not
        # whether the next one goes on from its place or begins anew, as it does each second. It cannot mark what
        # another snapshot may still see, such as that of an ANALYZE by autovacuum: so it is repeated.
        reading(db, calls.claim_steps("another", crowd.UNSERVED, ["served"], batch=500))
        claim(db, crowd.UNSERVED, 500, ["served"])
        polls.append(claim(db, crowd.UNSERVED, 500, ["served"]))
        return polls[-1][1].rows.total() <= EMPTY_POLL

    locks.until(reads_little, within=timedelta(minutes=1))
    idle, nothing = polls[-1]
    settle(db, steps, Release())  # for the next connection's turn, which finds the others parked

    assert {step.kind for step in steps} == {"served"}
    for read in reads:  # one that begins anew, as it does each second, passes over what was parked before it
        assert_at_most(read, rows=10 * window + unserved, blocks=40 * window + unserved)
    assert sum(read.rows.total() for read in reads) <= 12 * unserved, "they are passed over again and again"
    assert idle == []
    assert_at_most(nothing, rows=EMPTY_POLL, blocks=2000)  # pages of dead entries: they stay until a vacuum


def test_what_is_parked_stays_so_for_a_worker_of_another_tenant(db: DB, sizes: Sizes) -> None:
    """R34: it does not serve those steps either, so they are neither put back nor read one by one."""
    steps, _ = claim(db, crowd.UNSERVED, 500, ["served"])
    while not steps:  # until those before them are parked, as they are when the test above came first
        steps, _ = claim(db, crowd.UNSERVED, 500, ["served"])
    for _ in range(2):  # the first that passes over dead entries marks them as such
        claim(db, crowd.UNSERVED, 500, ["served"])
    settle(db, steps, Release())
    with db.transaction(force_rollback=True):
        steps, read = reading(db, calls.claim_steps("t", crowd.UNSERVED, batch=500, tenants=["other"]))
        db.execute("set local jit = off")  # for the count, which is ours
        parked = db.execute("select count(*) from holdfast.steps where parked_for = 'handler'").fetchone()

    assert (steps, parked) == ([], (sizes.many,))
    assert_at_most(read, rows=10 * 1000, blocks=6000)  # the 500 that others serve, and pages of the parked ones' index


def test_a_task_is_found_behind_the_steps_of_runs(db: DB, sizes: Sizes) -> None:
    """W-05: 100 000 stand before it, and nobody takes them; each claim reads some windows, and parks what it passes."""
    flow_steps, window = sizes.some, 20 * 1000
    with db.transaction(force_rollback=True):
        db.execute("delete from holdfast.workers")
        run(db, calls.start_tasks([{"name": "behind", "queue": crowd.ONE_RUN}]))
        tasks: list[str] = []
        for _ in range(flow_steps // window + 1):
            tasks, read = counted(
                db, lambda: [row[1] for row in db.execute("select * from work.claim_next_task('w', null, 'one run')")]
            )
            assert_at_most(read, rows=10 * window + flow_steps, blocks=40 * window + flow_steps)
            if tasks:
                break
    # The first poll after it walks past the index entries that the rollback left dead; no other test is to count them.
    settle(db, run(db, calls.claim_steps("sweeper", crowd.ONE_RUN)), Release())

    assert tasks == ["behind"]


def test_what_workers_and_producers_call_now_and_then_is_not_compiled(db: DB) -> None:
    """Some of these switch no plan type off; beside 1.8 million steps they must look cheap all the same."""
    queue = f"now and then {uuid4()}"

    def work() -> None:
        run(db, calls.enlist_worker("w", [queue, crowd.BULK], about={}))
        run(db, calls.define_kind("noop"))
        bulk.start_tasks(db, [Start("noop", "{}", queue=queue)] * 50)
        (step_id,) = run(db, calls.start_task("noop", queue=queue))
        for wish in (calls.cancel(str(step_id)), calls.upkeep(worker="w"), calls.mark_asleep("w", queue)):
            run(db, wish)

    _, read = counted(db, work)

    assert_at_most(read, rows=5000, blocks=10_000)


def test_no_plan_inside_a_batch_throws_rows_away(db: DB) -> None:
    """Benchmarks 5.1 and 5.2: nor over the triggers' transition tables, which no statistics count."""
    batch = 500
    try:
        steps, nodes = executed_plans(db, calls.claim_steps("w", crowd.BULK, batch=batch))
    except psycopg.errors.UndefinedFile:
        pytest.skip("this server comes without auto_explain; Debian's has it")
    outcomes = [Settlement(s.step_id, s.lease_id, Retry() if n % 5 == 0 else Done()) for n, s in enumerate(steps)]
    settled, more = executed_plans(db, calls.settle_steps(outcomes))

    assert len(settled) == len(steps) == batch
    for node in nodes + more:
        assert (node.type, node.relation) not in {
            ("Seq Scan", table) for table in ("steps", "runs", "journal", "edges")
        }
        assert node.removed <= 10 * batch, node
    assert any(node.type.startswith("Index Scan") and node.relation == "steps" for node in nodes)
