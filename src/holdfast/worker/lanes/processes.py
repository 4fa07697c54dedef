"""The lane of CPU-bound handlers, each in its own process, so that they delay no other and can be killed.

A thread of the worker sends a child one attempt at a time and waits for its answer. A child that dies fails only that
attempt. A child whose time is up or whose lease is lost is killed. It ends with its parent, however the parent ends.
A child's handler may fork. The fork holds the child's pipes too, so a death is noticed by process id where possible.
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
from collections.abc import Iterable
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
        work = packed_batch(attempts) if isinstance(attempts, list) else packed(attempts)
        try:
            return self._answer(json.dumps(work).encode())
        except BaseException:  # else its answer would be taken for the next attempt's
            self.process.kill()
            raise

    def _answer(self, work: bytes) -> dict[str, Any] | None:
        try:
            self._pipe.send_bytes(work)
            wait([self._pipe, self._death])
            answer = json.loads(self._pipe.recv_bytes()) if self._pipe.poll() else None
        except (EOFError, OSError):  # it died, now or while it was idle
            return None
        except ValueError:  # something else wrote to its pipe
            return {}
        return answer if isinstance(answer, dict) else None

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
            answer = _answer_batch(work, dsn) if "each" in work else _answer(unpacked(work, dsn))
            pipe.send_bytes(json.dumps(answer).encode())
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


def _answer_batch(work: dict[str, Any], dsn: str) -> dict[str, Any]:
    """Run a call of many steps, and return the answer to send."""
    attempts = [unpacked({**work, **each}, dsn) for each in work["each"]]
    failpoint("before_attempt_apart")
    outcomes = run_batch(BatchCall(attempts, executor_for(dsn, work["worker"], work["lease"])))
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
