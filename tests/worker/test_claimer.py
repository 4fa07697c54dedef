"""What a worker takes: how much at a time, in which order, of which kinds and tenants, and what it gives back."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import psycopg
import pytest

from holdfast import Batch, Holdfast
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.testing import events
from holdfast.worker import claimer
from holdfast.worker.claimer import BatchSize
from holdfast.worker.fetch_ahead import PATIENCE, FetchAhead
from holdfast.worker.loop import Worker
from holdfast.worker.options import new_identity
from kernel.steps import DB, start, step_row, value
from worker.running import burst, seconds, until, until_event, worker_of, working

pytestmark = pytest.mark.one_server


def test_the_batch_size_begins_with_what_can_run_at_once() -> None:
    """W-05."""
    assert BatchSize(10, 500).room(0) == 10
    assert BatchSize(1000, 500).room(0) == 500


def test_the_batch_size_doubles_while_batches_are_through_soon_and_halves_when_late() -> None:
    """W-05."""
    pace = BatchSize(10, 100)
    sizes = []
    for took in (0.01, 0.01, 0.01, 0.01, 0.01, 0.2, 1, 1, 1, 1, 1):
        pace.batch_ended(pace.size, took)
        sizes.append(pace.size)

    assert sizes == [20, 40, 80, 100, 100, 100, 50, 25, 12, 10, 10]


def test_a_small_batch_that_was_through_soon_proves_nothing() -> None:
    """W-05."""
    pace = BatchSize(10, 100)
    pace.batch_ended(2, 0.001)

    assert pace.size == 10


@pytest.mark.parametrize(("unfinished", "room"), [(0, 10), (7, 3), (10, 0), (11, 0)])
def test_the_batch_size_takes_what_can_run_while_handlers_are_not_known_to_be_quick(unfinished: int, room: int) -> None:
    """W-05."""
    assert BatchSize(10, 100).room(unfinished) == room


@pytest.mark.parametrize(("unfinished", "room"), [(0, 40), (10, 40), (40, 40), (41, 0), (80, 0)])
def test_the_batch_size_fetches_a_batch_while_no_more_than_one_waits(unfinished: int, room: int) -> None:
    """W-05."""
    pace = BatchSize(10, 100)
    pace.size = 40

    assert pace.room(unfinished) == room


def test_the_batch_size_that_took_too_much_begins_again() -> None:
    """W-05."""
    pace = BatchSize(10, 100)
    pace.size = 80
    pace.overfull()

    assert pace.size == 10


def test_a_claim_that_a_limit_cut_short_is_followed_by_ones_for_idle_handlers_alone() -> None:
    """A-54: where a limit binds, the database gives no more, and looks at the others in vain."""
    ahead = FetchAhead()
    asked = []
    for _ in range(PATIENCE + 2):
        asked.append(ahead.most(500, 200))
        ahead.claimed(asked[-1], 200, 200)

    assert asked == [500, *[200] * PATIENCE, 500]
    assert ahead.most(500, 0) == 0  # nothing is idle: nothing to claim


@pytest.mark.parametrize(("free", "got"), [(200, 201), (200, 500), (200, 199), (500, 500), (0, 1), (0, 0)])
def test_other_claims_are_followed_by_ones_that_fetch_ahead(free: int, got: int) -> None:
    """W-05: it got more than it could begin, or there was no more, or it did not ask for more."""
    ahead = FetchAhead()
    ahead.claimed(500, free, got)

    assert ahead.most(500, 10) == 500


def test_a_limit_that_binds_for_long_is_tried_less_often() -> None:
    """A-54."""
    ahead = FetchAhead()
    tried = []
    for number in range(200):
        asked = ahead.most(500, 200)
        tried += [number] if asked > 200 else []
        ahead.claimed(asked, 200, 200)

    assert tried == [0, 9, 26, 59, 124, 189]


@pytest.mark.parametrize(("took", "is_at_once"), [(0.001, True), (0.02, True), (0.021, False)])
def test_the_batch_size_knows_whether_a_batch_was_through_at_once(took: float, is_at_once: bool) -> None:
    """T-12: only then is it worth waiting for what it frees."""
    learning = BatchSize(10, 100)
    learning.batch_ended(1, took)

    assert learning.is_at_once is is_at_once


def chain(db: DB, length: int, kind: str = "link") -> str:
    """Start a run of steps each of which waits for the one before."""
    names = [str(number) for number in range(length)]
    steps = [{"kind": kind, "name": name, "after": names[:place][-1:]} for place, name in enumerate(names)]
    (run_id,) = run(db, calls.start_run("flow.task", "chain", "flow.step", steps=steps))
    return str(run_id)


@pytest.mark.parametrize("at_once", [claimer.AT_ONCE, -1.0])
def test_what_a_settle_frees_is_claimed_without_a_poll_or_a_hint(
    hf: Holdfast, db: DB, monkeypatch: pytest.MonkeyPatch, at_once: float
) -> None:
    """T-12: by a worker that hears no hints and would look again in five minutes, however long its batches take."""
    monkeypatch.setattr(claimer, "AT_ONCE", at_once)
    hf.task(name="link")(lambda: None)
    run_id = chain(db, 20)

    with working(hf, listens=False, poll_min=seconds(300), poll_max=seconds(300)):
        until(lambda: value(db, f"select state from holdfast.runs where id = '{run_id}'") == "complete", "the end")


@pytest.mark.parametrize(
    ("runs", "tasks", "is_awaited"), [(1, 0, True), (1, 1, True), (0, 1, False), (3, 0, False), (0, 0, False)]
)
def test_children_are_waited_for_only_where_nothing_else_is_due(
    hf: Holdfast,
    db: DB,
    runs: int,
    tasks: int,
    is_awaited: bool,
) -> None:
    """T-12: a claim of three that brought less, and a step of a run among it."""
    link = hf.task(name="link")(lambda: None)
    for _ in range(runs):
        chain(db, 2)
    link.start_many([{}] * tasks)
    worker = worker_of(hf, concurrency=3)

    asyncio.run(claimed_once(worker))

    assert worker.claimer.awaits_children is is_awaited


async def claimed_once(worker: Worker) -> None:
    await worker.claimer.claim(worker._claims)
    await worker._claims.close()
    worker.claimer.close()


class Slots:
    """Handlers that fill their slots until they are let go, and others that are quick."""

    def __init__(self, hf: Holdfast) -> None:
        self.go = threading.Event()
        self.began = threading.Semaphore(0)
        self.long = hf.task(name="long")(self._long)
        self.quick = hf.task(name="quick")(self._quick)

    def _long(self) -> None:
        self.began.release()
        self.go.wait(30)

    def _quick(self, number: int) -> int:
        return number


def test_what_waits_behind_long_handlers_is_given_back_uncharged(hf: Holdfast, db: DB) -> None:
    """W-05: another worker may have a slot for it."""
    slots = Slots(hf)
    with working(hf, concurrency=2) as worker:
        worker.claimer._batch_size.size = 8
        slots.long.start_many([{}] * 8)
        until(lambda: value(db, "select count(*) from holdfast.journal where event = 'released'") >= 6, "the surplus")
        with working(hf, concurrency=8):
            until(lambda: value(db, "select count(*) from holdfast.steps where state = 'running'") == 8, "the others")
            slots.go.set()
            until(lambda: value(db, "select count(*) from holdfast.steps where state = 'done'") == 8, "the end")

    assert value(db, "select max(failures) from holdfast.steps") == 0


def test_quick_steps_behind_one_long_handler_are_not_given_back(
    hf: Holdfast, db: DB, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W-05: only what waited itself is surplus."""
    monkeypatch.setattr(claimer, "SURPLUS_AFTER", 30.0)  # a busy machine may let a quick one wait for a second
    slots = Slots(hf)
    with working(hf, concurrency=2) as worker:
        slots.long.start()
        assert slots.began.acquire(timeout=30)
        (oldest,) = worker.held.values()
        oldest.claim.claimed_at -= 60  # it has been under way for long
        worker.claimer._batch_size.size = 64
        slots.quick.start_many({"number": n} for n in range(2000))
        until(lambda: value(db, "select count(*) from holdfast.steps where state = 'done'") == 2000, "the quick ones")
        slots.go.set()

    assert value(db, "select count(*) from holdfast.journal where event = 'released'") == 0


def test_quick_calls_of_small_keys_are_fetched_in_growing_claims(
    hf: Holdfast, db: DB, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each claim brought only as many calls as can run at once, so small keys took a claim per ten steps."""
    monkeypatch.setattr(claimer, "SOON", 60.0)  # on a busy machine, too

    @hf.task(batch=250, by="key")
    def push(batch: Batch, items: list[dict[str, int]]) -> list[int]:
        return [len(batch.steps)] * len(items)

    push.start_many({"key": n} for n in range(600))
    burst(hf, concurrency=10)

    assert value(db, "select count(*) from holdfast.steps where state = 'done'") == 600
    assert value(db, "select count(distinct at) from holdfast.journal where event = 'claimed'") < 30


def test_other_work_and_steps_that_fill_a_call_are_taken_while_as_many_calls_wait_as_may(hf: Holdfast, db: DB) -> None:
    """Each call waits for three minutes, and no call takes a slot."""
    sizes: list[int] = []

    @hf.task(batch=2, by="n", batch_wait=180, lease=600)
    def push(jobs: list[dict[str, int]]) -> list[int]:
        sizes.append(len(jobs))
        return [job["n"] for job in jobs]

    @hf.task
    def plain() -> int:
        return 1

    with working(hf, concurrency=2):
        for n in range(4):  # as many calls as may wait
            until_event(db, push.start({"n": n}).id, "claimed")
        assert plain.start().result(timeout=30) == 1
        assert push.start({"n": 3}).result(timeout=30) == 3
        for n in (3, 4):  # the last one takes the place of the oldest
            until_event(db, push.start({"n": n}).id, "claimed")
        until(lambda: sizes == [2, 1], "the oldest call")
        held = "select count(*) from holdfast.steps where lease_id is not null"
        until(lambda: value(db, held) == 4, "its settle")  # it is settled after its handler has returned


def test_a_kind_without_a_handler_is_left_untouched_and_shown(hf: Holdfast, db: DB) -> None:
    """W-52 as amended by C-89, R25: and is taken when a worker comes that serves it."""

    @hf.task
    def known() -> None: ...

    other = Holdfast(hf.dsn)
    unknown = start(db, "unknown", {})
    burst(hf)

    def standing() -> Any:
        return value(db, "select standing from holdfast.step_list where id = %s", unknown)

    assert (standing(), step_row(db, unknown)["attempt"], events(db, step=unknown)) == ("no handler", 0, [])
    other.task(name="unknown")(known.handler.function)
    burst(other)
    assert standing() == "over"


def test_a_worker_takes_only_its_queues_and_tenants(hf: Holdfast, db: DB) -> None:
    """W-05."""

    @hf.task
    def work() -> None: ...

    plain = work.start()
    acme = work.options(tenant="acme").start()
    mail = work.options(queue="mail").start()
    burst(hf, tenants=("acme",))
    assert [one.status().state for one in (plain, acme, mail)] == ["pending", "done", "pending"]
    burst(hf, queues=("mail", "default"))

    assert [one.status().state for one in (plain, mail)] == ["done", "done"]


def test_higher_priority_first_then_the_oldest(hf: Holdfast) -> None:
    """W-59."""
    order: list[int] = []

    @hf.task
    def work(number: int) -> None:
        order.append(number)

    for number, priority in enumerate((0, 5, 0, 9, 5)):
        work.options(priority=priority).start(number=number)
    burst(hf, concurrency=1, largest_batch=1)

    assert order == [3, 1, 4, 0, 2]


def test_two_workers_of_one_name_both_work_and_hold_leases_apart(hf: Holdfast, db: DB, log_lines: Any) -> None:
    """W-39: a name is for people; each start has an identity of its own. The second says that the name is taken."""
    slots = Slots(hf)
    first, second = new_identity("left"), new_identity("left")
    with working(hf, identity=first, concurrency=1) as one, working(hf, identity=second, concurrency=1) as other:
        until(lambda: one.is_ready and other.is_ready, "both")
        slots.long.start_many([{}] * 2)
        until(lambda: value(db, "select count(*) from holdfast.steps where state = 'running'") == 2, "both")
        owners = {owner for (owner,) in db.execute("select lease_owner from holdfast.steps")}
        slots.go.set()

    assert owners == {first, second}
    said = [line for line in log_lines if line["event"] == "worker.name_taken"]
    assert said
    assert {*said[0]["others"], said[0]["worker"]} == {first, second}


def test_a_worker_that_comes_again_is_not_its_own_namesake(hf: Holdfast, log_lines: Any) -> None:
    """W-39: one that stopped in order has left the list."""
    for _ in range(2):
        burst(hf, identity=new_identity("left"))

    assert not [line for line in log_lines if line["event"] == "worker.name_taken"]


def test_a_paused_queue_gives_nothing(hf: Holdfast, db: DB) -> None:
    """W-05."""

    @hf.task
    def work() -> None: ...

    handle = work.start()
    run(db, calls.pause_queue("default", "maintenance"))
    burst(hf)

    assert handle.status().state == "pending"


def test_a_worker_that_drains_hands_back_what_it_has_not_begun(hf: Holdfast, db: DB) -> None:
    """W-62, C-67: uncharged."""
    slots = Slots(hf)
    slots.long.start_many([{}] * 3)
    with working(hf, concurrency=1, grace=seconds(0.05)) as worker:
        worker.claimer._batch_size.size = 3
        assert slots.began.acquire(timeout=30)
    slots.go.set()

    assert {(r[0], r[1]) for r in db.execute("select state, failures from holdfast.steps")} == {("pending", 0)}


def test_a_burst_looks_again_after_another_worker_parked_its_step(
    hf: Holdfast, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that does not serve a step has it locked while it parks it, so the first claim finds nothing."""
    ran: list[int] = []

    @hf.task
    def rare() -> None:
        ran.append(1)

    rare.start()
    own_claim = claimer.Claimer.claim
    with psycopg.connect(dsn) as other:
        other.execute("select from holdfast.claim_steps('other', 'default', array['common'], 1, '1 h')")

        async def claim(self: claimer.Claimer, connection: Any) -> Any:
            found = await own_claim(self, connection)
            other.commit()
            return found

        monkeypatch.setattr(claimer.Claimer, "claim", claim)
        burst(hf)

    assert ran == [1]
