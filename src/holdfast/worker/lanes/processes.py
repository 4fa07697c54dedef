"""The lane of CPU-bound handlers, each in its own process, so that they delay no other and can be killed.

A thread of the worker sends a child one attempt at a time and waits for its answer. A child that dies fails only that
attempt. A child whose time is up or whose lease is lost is killed. While a child runs a call of many steps, the thread
sends it the steps that are lost, and that the call is over. A child ends with its parent, however the parent ends. Its
handler may fork. The fork holds the child's pipes too, so a death is noticed by process id where possible.
"""

from __future__ import annotations

import atexit
import json
import multiprocessing
import os
import signal
import sys
import threading
import weakref
from collections.abc import Iterable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from holdfast import log, masking
from holdfast.failpoints import failpoint
from holdfast.kernel.outcomes import as_json
from holdfast.models import (
    Done,
    Outcome,
    Release,
    Retry,
    SettledStep,
    Unreadable,
)
from holdfast.worker import forks
from holdfast.worker.attempt import Attempt, BatchCall, LeaseRanOut, Unit
from holdfast.worker.batch import run_batch
from holdfast.worker.execute import Interrupted, Unfit, outcome_of, run_handler
from holdfast.worker.exit_codes import STOPS
from holdfast.worker.lanes.packing import (
    executor_for,
    late,
    numbers,
    packed,
    packed_batch,
    read_outcome,
    unpacked,
)
from holdfast.worker.lanes.threads import Run

SPAWN = multiprocessing.get_context("spawn")  # not fork: the worker has threads
NAME = "holdfast-cpu"
LOOK_EACH = 0.25  # seconds between looks for lost steps of a call
OVER: dict[str, Any] = {"is_over": True}


def run_in_child(dsn: str) -> Run:
    """Return a function that runs attempts, with one child per calling thread."""
    local = threading.local()

    def run_apart(unit: Unit) -> None:
        child: Child | None = getattr(local, "child", None)
        if child is None or not child.process.is_alive():
            child = local.child = Child(dsn)
        if isinstance(unit, BatchCall):
            child.run_batch(unit)
        else:
            unit.conclude(child.run(unit))

    return run_apart


class Child:
    """One process that runs attempts."""

    def __init__(self, dsn: str) -> None:
        self._pipe, child_end = SPAWN.Pipe()
        args = (child_end, dsn, log.settings(), masking.known.values())  # through a pipe, not on the command line
        self.process = SPAWN.Process(target=_serve, args=args, daemon=True, name=NAME)
        self.process.start()
        child_end.close()
        forks.own(self._pipe)
        self._death = _death_of(self.process)
        self._lock = threading.Lock()
        self._current: Unit | None = None

    def interrupt(self, attempt: Unit) -> None:
        """Kill the process if it still runs that attempt; the next attempt must not be hit."""
        with self._lock:
            if self._current is attempt:
                self.process.kill()

    def run(self, attempt: Attempt) -> Outcome | None:
        """Run an attempt in the process, and return its outcome."""
        if isinstance(attempt.step.cursor, Unreadable):
            raise Unfit(f"the cursor cannot be read: {attempt.step.cursor.reason}")
        attempt.begin()
        self._current = attempt
        attempt.interrupt = self.interrupt
        while (answer := self._ask(attempt)) == late(attempt):
            attempt.check_lease()  # the lease may have been renewed meanwhile
        with self._lock:
            self._current = None
        if answer is None or answer.get("of") != numbers(attempt):
            return self._ended(attempt, answer)
        attempt.settled = SettledStep(*answer["settled"]) if answer["settled"] else None
        return read_outcome(answer["outcome"])

    def run_batch(self, call: BatchCall) -> None:
        """Run a call of many steps in the process, and record their outcomes."""
        begun: list[Attempt] = []
        for attempt in call.attempts:
            try:
                attempt.begin()
            except LeaseRanOut as error:
                attempt.conclude(outcome_of(attempt, error))
            else:
                begun.append(attempt)
        if not begun:
            return
        self._current = call
        call.interrupt = self.interrupt
        answer = self._ask(begun)
        with self._lock:
            self._current = None
        if answer is None or answer.get("of") != [numbers(attempt) for attempt in begun]:
            for attempt in begun:
                attempt.is_poison = attempt.is_timed_out or not attempt.ctx.cancelled
                attempt.conclude(self._ended(attempt, answer))
            return
        for attempt, (outcome, settled) in zip(begun, answer["each"], strict=True):
            row = SettledStep(*settled) if settled else None
            attempt.raised_with = None if outcome is None else outcome.get("raised_with")
            if row is not None:
                attempt.settled_as(read_outcome(outcome) or Done(), row)
            else:
                attempt.conclude(read_outcome(outcome))

    def _ask(self, attempts: Attempt | list[Attempt]) -> dict[str, Any] | None:
        try:
            if not isinstance(attempts, list):
                return self._answer(json.dumps(packed(attempts)).encode())
            answer = self._answer(json.dumps(packed_batch(attempts)).encode(), attempts)
            with suppress(OSError):  # it died after its answer
                self._send(OVER)
        except BaseException:  # else its answer would be taken for the next attempt's
            self.process.kill()
            raise
        return answer

    def _answer(self, work: bytes, of_call: Sequence[Attempt] = ()) -> dict[str, Any] | None:
        try:
            self._pipe.send_bytes(work)
            self._wait(of_call)
            answer = json.loads(self._pipe.recv_bytes()) if self._pipe.poll() else None
        except (EOFError, OSError):  # it died, now or while it was idle
            return None
        except ValueError:  # something else wrote to its pipe
            return {}
        return answer if isinstance(answer, dict) else None

    def _wait(self, of_call: Sequence[Attempt]) -> None:
        """Wait for the answer, or the death of the process. Send it the steps of a call that are lost meanwhile."""
        told: set[int] = set()  # of which leases
        while not wait([self._pipe, self._death], LOOK_EACH if of_call else None):
            lost = [attempt for attempt in of_call if attempt.is_lost and attempt.step.lease_id not in told]
            reasons = {attempt.step.lease_id: attempt.ctx.stop_reason for attempt in lost if attempt.ctx.cancelled}
            if reasons:
                told.update(reasons)
                self._send({"lost": list(reasons.items())})

    def _send(self, message: dict[str, Any]) -> None:
        self._pipe.send_bytes(json.dumps(message).encode())

    def _ended(self, attempt: Attempt, answer: dict[str, Any] | None) -> Outcome | None:
        """Kill the process, which may have closed its pipe and still run; merely waiting could block the attempt."""
        self.process.kill()
        self.process.join()
        why = "its process died" if answer is None else "its process answered for another attempt"
        if attempt.ctx.cancelled:
            return outcome_of(attempt, Interrupted())
        return Retry({"type": "ProcessDied", "message": f"{why}; its exit code was {self.process.exitcode}"})


def _death_of(process: BaseProcess) -> int:
    """Return a descriptor that is ready when the process is dead; its sentinel would also wait for its forks."""
    pidfd = _pidfd(process.pid or 0)
    if pidfd is None:
        return process.sentinel
    weakref.finalize(process, os.close, pidfd)
    return pidfd


def _pidfd(pid: int) -> int | None:
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # an old kernel, or a container that forbids it
        return None


@atexit.register  # registered after multiprocessing's own, so it runs before it
def _end_children() -> None:
    """Kill idle children: they ignore SIGTERM, so multiprocessing would wait for them forever."""
    for process in multiprocessing.active_children():
        if process.name == NAME:
            process.kill()


def _serve(pipe: Connection, dsn: str, logs: log.Settings | None, secrets: Iterable[tuple[str, str | None]]) -> None:
    """Run in the child until the parent is gone. The parent handles signals that are sent to all processes."""
    for value, name in secrets:
        masking.known.add(value, name)
    if logs is not None:
        log.configure(*logs)
    for number in STOPS:
        signal.signal(number, lambda _number, _frame: None)  # not SIG_IGN, which a handler's own children would inherit
    forks.own_signals(*STOPS)
    forks.own(pipe)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=[parent], daemon=True).start()
    with forks.guarded():
        while True:
            try:
                work = json.loads(pipe.recv_bytes())
            except EOFError:
                return
            if "each" in work:
                _serve_batch(pipe, work, dsn)
            else:
                pipe.send_bytes(json.dumps(_answer(unpacked(work, dsn))).encode())
                failpoint("after_answer_apart")


def _answer(attempt: Attempt) -> dict[str, Any]:
    """Run an attempt, and return the answer to send."""
    failpoint("before_attempt_apart")
    outcome = run_handler(attempt)
    failpoint("after_attempt_apart")
    if isinstance(outcome, Release):
        return late(attempt)
    settlement = None if outcome is None else as_json(attempt.settlement(outcome))
    return {"of": numbers(attempt), "outcome": settlement, "settled": attempt.settled}


def _serve_batch(pipe: Connection, work: dict[str, Any], dsn: str) -> None:
    """Run a call of many steps, and send the answer. Meanwhile a thread hears which of the steps are lost."""
    attempts = [unpacked({**work, **each}, dsn) for each in work["each"]]
    listener = threading.Thread(target=_mark_lost, args=[pipe, attempts], daemon=True)
    listener.start()
    answer = _answer_batch(BatchCall(attempts, executor_for(dsn, work["worker"], work["lease"])))
    pipe.send_bytes(json.dumps(answer).encode())
    failpoint("after_answer_apart")
    listener.join()  # else it would read the next work


def _mark_lost(pipe: Connection, attempts: list[Attempt]) -> None:
    """Mark steps that the parent reports as lost, until it has the answer."""
    by_lease = {attempt.step.lease_id: attempt for attempt in attempts}
    with suppress(EOFError, OSError):  # the parent is gone
        while (message := json.loads(pipe.recv_bytes())) != OVER:
            for lease_id, why in message["lost"]:
                attempt = by_lease[lease_id]
                attempt.is_lost = True
                attempt.ctx.tell_to_stop(why)


def _answer_batch(call: BatchCall) -> dict[str, Any]:
    """Run a call of many steps, and return the answer to send."""
    attempts = call.attempts
    failpoint("before_attempt_apart")
    outcomes = run_batch(call)
    failpoint("after_attempt_apart")
    each = []
    for attempt, given in zip(attempts, outcomes, strict=True):
        outcome = attempt.outcome if attempt.settled is not None else given
        each.append([None if outcome is None else as_json(attempt.settlement(outcome)), attempt.settled])
    return {"of": [numbers(attempt) for attempt in attempts], "each": each}


def _end_with(parent: BaseProcess) -> None:
    pidfd = _pidfd(parent.pid or 0)
    if pidfd is None:
        parent.join()
    elif os.getppid() == parent.pid:  # else it is gone, and its id may belong to another process
        wait([pidfd])
    os._exit(1)
