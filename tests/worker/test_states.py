"""The worker's own machine (document 004): the legal moves, the visible traces, and the times between."""

from __future__ import annotations

import inspect
import random
from itertools import product

import pytest

from holdfast import Holdfast
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.worker.loop import Worker
from holdfast.worker.options import Options
from holdfast.worker.states import MOVES, STATES, IllegalMove, State, States
from kernel.steps import DB, claim_one, start
from worker.running import burst, metric, running, seconds, until, worker_of, working

pytestmark = pytest.mark.one_server

LISTED = """
W-13 startup connecting
W-14 connecting recovery
W-15 connecting error_wait
W-16 recovery polling
W-17 polling claiming
W-18 polling backoff
W-19 backoff idle
W-20 idle connecting
W-21 claiming processing
W-22 claiming polling
W-23 processing reporting_success
W-24 processing reporting_failure
W-25 reporting_success polling
W-26 reporting_failure polling
W-28 error_wait connecting
"""
DOCUMENT = {tuple(line.split()[1:]) for line in LISTED.split("\n") if line}
WORKING_STATES = [s for s in STATES if s not in {"error_wait", "draining", "stopped"}]
ANY = {(s, "error_wait") for s in WORKING_STATES} | {(s, "draining") for s in [*WORKING_STATES, "error_wait"]}
TABLE = DOCUMENT | ANY | {("draining", "stopped")}
# In how many transactions leases ran out, and whether the worker claimed between the first and the last of them.
RECOVERED = """
select count(distinct j.xmin::text),
       exists (select from holdfast.journal c
                where c.event = 'claimed' and c.id > min(j.id) and c.id < max(j.id))
  from holdfast.journal j where j.event = 'expired'
"""


class Trace:
    """The moves of a worker itself, in order; tasks' moves apart."""

    def __init__(self, worker: Worker) -> None:
        self.states: list[State] = ["startup"]
        self.moves: list[tuple[State, State]] = []
        self._watch, worker.states._watch = worker.states._watch, self._note
        self._worker = worker

    def _note(self, come: State, to: State, count: int) -> None:
        self.moves.append((come, to))
        if to in {"backoff", "error_wait", "draining"} or (come != "polling" and come == self._worker.states.worker):
            self.states.append(to)
        assert self._watch is not None
        self._watch(come, to, count)


def traced(app: Holdfast, **options: object) -> tuple[Worker, Trace]:
    worker = worker_of(app, **options)
    return worker, Trace(worker)


@pytest.mark.parametrize(("come", "to"), sorted(TABLE))
def test_a_listed_move_is_made(come: State, to: State) -> None:
    """W-13 to W-28, W-62: a stop leads through draining."""
    states = States()
    states.worker = come

    states.enter(to)

    assert states.worker == to


@pytest.mark.parametrize(
    ("come", "to"), sorted((a, b) for a, b in product(STATES, STATES) if a != b and (a, b) not in TABLE)
)
def test_every_other_move_is_refused(come: State, to: State) -> None:
    """W-29."""
    states = States()
    states.worker = come

    with pytest.raises(IllegalMove, match=f"{come} to {to}"):
        states.enter(to)

    assert states.worker == come


def test_the_table_is_the_documents() -> None:
    """W-29."""
    assert MOVES == TABLE


def test_a_path_of_tasks_is_checked_move_by_move() -> None:
    """W-29: no processing without a claim."""
    with pytest.raises(IllegalMove):
        States().pass_tasks(1, "polling", "processing")


def test_an_idle_worker_goes_round_from_connecting_to_idle(hf: Holdfast) -> None:
    """W-13, W-14, W-16, W-18, W-19, W-20, W-30, C-68."""
    worker, trace = traced(hf, listens=False)

    with running(worker):
        until(lambda: trace.states.count("idle") >= 2, "a second sleep")

    assert trace.states[:7] == ["startup", "connecting", "recovery", "polling", "backoff", "idle", "connecting"]
    assert trace.states[-2:] == ["draining", "stopped"]


def test_tasks_back_to_back_have_no_idle_between(hf: Holdfast) -> None:
    """W-17, W-21, W-23, W-24, W-25, W-26."""

    @hf.task
    def either(number: int) -> None:
        if number % 3 == 0:
            raise ValueError

    either.start_many({"number": n} for n in range(60))
    worker, trace = traced(hf, burst=True, concurrency=1, largest_batch=1)
    with running(worker):
        until(lambda: worker.states.worker == "stopped", "the end of the burst")

    first, last = trace.moves.index(("polling", "claiming")), trace.moves[::-1].index(("polling", "claiming"))
    between = trace.moves[first : len(trace.moves) - last]
    assert not {"idle", "backoff", "connecting"} & {state for move in between for state in move}
    assert worker.states.moves["reporting_failure", "polling"] == 20
    assert worker.states.moves["reporting_success", "polling"] == 40
    assert set(trace.moves) <= TABLE


@pytest.mark.parametrize("seed", range(4))
def test_with_failures_in_every_state_the_trace_is_accepted(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """W-03, W-27, W-29, W-33, W-34: and all of the work is done in the end."""
    chance = random.Random(seed)

    @hf.task
    def count(number: int) -> int:
        return number

    worker, trace = traced(hf, listens=False, recovery_interval=seconds(0.001))
    for place, name in (
        (worker, "_connect"), (worker._recovery, "run_if_due"), (worker.claimer, "claim"), (worker, "_interval"),
        (worker.settler, "_make"),
    ):  # fmt: skip
        monkeypatch.setattr(place, name, _failing(getattr(place, name), chance), raising=True)
    started = [count.start(number=n) for n in range(20)]
    with running(worker):
        assert [one.result(timeout=60) for one in started] == list(range(20))
        until(lambda: ("error_wait", "connecting") in trace.moves, "an error, and a new beginning")

    assert set(trace.moves) <= TABLE


def _failing(call, chance: random.Random):  # type: ignore[no-untyped-def]
    def fails() -> bool:
        return chance.random() < 0.15

    async def afterwards(*args, **kwargs):  # type: ignore[no-untyped-def]
        if fails():
            raise OSError("injected")
        return await call(*args, **kwargs)

    def at_once(*args, **kwargs):  # type: ignore[no-untyped-def]
        if fails():
            raise OSError("injected")
        return call(*args, **kwargs)

    return afterwards if inspect.iscoroutinefunction(call) else at_once


def test_a_failure_while_reporting_is_not_the_tasks(hf: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    """W-63: the outcome is kept and said again; no task is in two places meanwhile."""

    @hf.task
    def count() -> int:
        return 1

    worker = worker_of(hf, listens=False)
    make, failures = worker.settler._make, iter([True, True, False])

    async def failing(said):  # type: ignore[no-untyped-def]
        if next(failures, False):
            raise OSError("cut")
        return await make(said)

    monkeypatch.setattr(worker.settler, "_make", failing)
    started = count.start()
    with running(worker):
        assert started.result(timeout=30) == 1
        until(lambda: not worker.in_flight, "the settling")

    assert worker.states.moves["reporting_success", "polling"] == 1
    assert all(tally >= 0 for tally in worker.states.tasks.values())


def test_polls_come_less_and_less_often_up_to_ten_seconds() -> None:
    """W-06, W-47, C-70."""
    options = Options()

    intervals = [options.poll_interval(polls).total_seconds() for polls in range(1, 9)]

    assert intervals == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10]
    assert options.poll_interval(10**9) == seconds(10)


def test_a_task_that_is_found_resets_the_interval(hf: Holdfast) -> None:
    """W-47."""

    @hf.task
    def count() -> int:
        return 1

    slept: list[float] = []
    worker = worker_of(hf, listens=False)
    worker.meters.poll_interval.set = slept.append  # type: ignore[method-assign]
    with running(worker):
        until(lambda: len(slept) >= 3, "a third sleep")
        count.start().result(timeout=30)
        until(lambda: slept.count(0.01) >= 2, "a short sleep")

    assert slept[:3] == [0.01, 0.02, 0.04]


def test_the_times_are_those_of_the_document_unless_said_otherwise() -> None:
    """W-28, W-45, W-46, W-48, C-70."""
    options = Options()

    assert (options.error_wait, options.recovery_interval) == (seconds(5), seconds(30))


def test_recovery_is_entered_each_round_and_done_when_due(hf: Holdfast) -> None:
    """W-04, W-14, W-16, W-45, C-68: the first pass after the start does it."""
    worker, trace = traced(hf, listens=False, recovery_interval=seconds(3600))
    done = []
    make = worker._claims.make

    async def noted(call):  # type: ignore[no-untyped-def]
        done.append(call.function)
        return await make(call)

    worker._claims.make = noted  # type: ignore[method-assign]
    with running(worker):
        until(lambda: trace.states.count("recovery") >= 3, "a third recovery")

    assert done.count("measured_upkeep") == 1


def test_recovery_takes_back_what_a_lost_worker_held(hf: Holdfast, db: DB, clock) -> None:  # type: ignore[no-untyped-def]
    """W-35, W-37, W-38."""

    @hf.task
    def count() -> int:
        return 1

    step = start(db, "count", {})
    claim_one(db, "a worker that died", lease=seconds(30))
    clock.advance(seconds(31))
    worker = burst(hf)

    assert hf.handle(step).result(timeout=1) == 1
    assert metric(worker, "holdfast_rescued_total") == 1


def test_recovery_goes_on_until_no_lease_that_ran_out_is_left(hf: Holdfast, db: DB, clock) -> None:  # type: ignore[no-untyped-def]
    """W-45: a pass is more than one transaction, and what it brings back is claimed in between."""

    @hf.task
    def count() -> int:
        return 1

    run(db, calls.start_tasks([{"name": "count"}] * 2100))
    assert len(run(db, calls.claim_steps("workers that died", batch=10_000, lease=seconds(30)))) == 2100
    clock.advance(seconds(31))
    worker = burst(hf, recovery_interval=seconds(3600))

    assert metric(worker, "holdfast_rescued_total") == 2100
    ((chunks, is_between),) = db.execute(RECOVERED).fetchall()
    assert chunks >= 3  # of at most 1,000
    assert is_between
    assert db.execute("select state, count(*) from holdfast.steps group by 1").fetchall() == [("done", 2100)]


def test_a_hint_without_work_is_a_claim_that_failed(hf: Holdfast) -> None:
    """W-22, C-64: somebody else was faster, and that is no error."""
    with working(hf, listens=False) as worker:
        until(lambda: worker.states.worker == "idle", "a sleep")
        worker.wake()
        until(lambda: worker.states.moves["claiming", "polling"] >= 1, "the failed claim")

    assert metric(worker, "holdfast_worker_errors_total") == 0
