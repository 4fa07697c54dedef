"""The lane of CPU-bound handlers, each in its own process, so that they delay no other and can be killed.

A thread of the worker sends a child one attempt at a time and waits for its answer. A child that dies fails only that
attempt. A child whose time is up or whose lease is lost is killed. It ends with its parent, however the parent ends.
A child's handler may fork. The fork holds the child's pipes too, so a death is noticed by process id where possible.
"""

from __future__ import annotations

import atexit
import importlib
import json
import multiprocessing
import os
import signal
import sys
import threading
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache, reduce
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any
from uuid import UUID

from holdfast import log, masking
from holdfast.config import Config
from holdfast.connections.handler_tx import HandlerExecutor
from holdfast.failpoints import failpoint
from holdfast.handlers.registry import Handler, RetryPolicy
from holdfast.handlers.signature import Signature
from holdfast.kernel.outcomes import as_json
from holdfast.models import (
    ClaimedStep,
    Continue,
    Done,
    Fail,
    Json,
    Outcome,
    Release,
    Retry,
    SettledStep,
    Snooze,
    Unreadable,
)
from holdfast.worker import forks
from holdfast.worker.attempt import Attempt, Batch
from holdfast.worker.execute import Interrupted, Unfit, outcome_of, run_handler
from holdfast.worker.exit_codes import STOPS
from holdfast.worker.lanes.threads import Run

SPAWN = multiprocessing.get_context("spawn")  # not fork: the worker has threads
NAME = "holdfast-cpu"


def run_in_child(dsn: str) -> Run:
    """Return a function that runs attempts, with one child per calling thread."""
    local = threading.local()

    def run(attempt: Attempt) -> Outcome | None:
        child: Child | None = getattr(local, "child", None)
        if child is None or not child.process.is_alive():
            child = local.child = Child(dsn)
        return child.run(attempt)

    return run


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
        self._current: Attempt | None = None

    def interrupt(self, attempt: Attempt) -> None:
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
        while (answer := self._ask(attempt)) == _late(attempt):
            attempt.check_lease()  # the lease may have been renewed meanwhile
        with self._lock:
            self._current = None
        if answer is None:
            return self._ended(attempt, "its process died")
        if answer.get("of") != _numbers(attempt):
            return self._ended(attempt, "its process answered for another attempt")
        attempt.settled = SettledStep(*answer["settled"]) if answer["settled"] else None
        return _outcome(answer["outcome"])

    def _ask(self, attempt: Attempt) -> dict[str, Any] | None:
        try:
            return self._answer(_packed(attempt))
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

    def _ended(self, attempt: Attempt, why: str) -> Outcome | None:
        """Kill the process, which may have closed its pipe and still run; merely waiting could block the attempt."""
        self.process.kill()
        self.process.join()
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


def _packed(attempt: Attempt) -> bytes:
    handler, step = attempt.handler, attempt.step
    span = None if handler.timeout is None else handler.timeout.total_seconds()
    work = {
        "module": handler.function.__module__,
        "name": handler.function.__qualname__,
        "kind": handler.kind,
        "is_retried": handler.retry is not None,
        "timeout": span,
        "worker": attempt.ctx.worker,
        "lease": attempt.lease,
        "renewed_at": attempt.renewed_at,
        "step": [step.step_id, None if step.run_id is None else str(step.run_id), step.attempt, step.lease_id],
        "input": step.input,
        "cursor": step.cursor,
    }
    return json.dumps(work).encode()


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
            pipe.send_bytes(json.dumps(_answer(_unpacked(work, dsn))).encode())
            failpoint("after_answer_apart")


def _answer(attempt: Attempt) -> dict[str, Any]:
    """Run an attempt, and return the answer to send."""
    failpoint("before_attempt_apart")
    outcome = run_handler(attempt)
    failpoint("after_attempt_apart")
    if isinstance(outcome, Release):
        return _late(attempt)
    settlement = None if outcome is None else as_json(attempt.settlement(outcome))
    return {"of": _numbers(attempt), "outcome": settlement, "settled": attempt.settled}


def _late(attempt: Attempt) -> dict[str, Any]:
    """Return the answer for an attempt whose lease ran out before the handler began."""
    return {"of": _numbers(attempt), "is_late": True}


def _numbers(attempt: Attempt) -> list[int]:
    return [attempt.step.step_id, attempt.step.lease_id]


def _end_with(parent: BaseProcess) -> None:
    pidfd = _pidfd(parent.pid or 0)
    if pidfd is None:
        parent.join()
    elif os.getppid() == parent.pid:  # else it is gone, and its id may belong to another process
        wait([pidfd])
    os._exit(1)


def _unpacked(work: dict[str, Any], dsn: str) -> Attempt:
    handler = _handler(Work(work["module"], work["name"], work["kind"], work["is_retried"], work["timeout"]))
    step_id, run_id, number, lease_id = work["step"]
    cursor = None if work["cursor"] is None else json.dumps(work["cursor"])
    run = None if run_id is None else UUID(run_id)
    step = ClaimedStep(step_id, run, work["kind"], work["input"], number, lease_id, None, cursor)  # type: ignore[arg-type]
    executor = _executor(dsn, work["worker"], work["lease"])
    return Attempt(step, handler, executor, work["lease"], Batch(1, work["renewed_at"]))


@dataclass(frozen=True)
class Work:
    """The key that identifies a handler across processes."""

    module: str
    name: str
    kind: str
    is_retried: bool
    timeout: float | None


@lru_cache
def _handler(work: Work) -> Handler:
    target: Any = reduce(getattr, work.name.split("."), importlib.import_module(work.module))
    function = target.handler.function if hasattr(target, "handler") else target
    return Handler(
        kind=work.kind,
        function=function,
        signature=Signature(function),
        is_async=False,
        uses_cpu=True,
        queue="",
        retry=RetryPolicy() if work.is_retried else None,
        lease=None,
        timeout=None if work.timeout is None else timedelta(seconds=work.timeout),
    )


@lru_cache
def _executor(dsn: str, worker: str, lease: float) -> HandlerExecutor:
    return HandlerExecutor(dsn, worker, timedelta(seconds=lease), Config().call_deadline)


def _outcome(settlement: dict[str, Any] | None) -> Outcome | None:
    if settlement is None:
        return None
    after = settlement.get("retry_after")
    wait_for = None if after is None else timedelta(seconds=float(after.removesuffix(" s")))
    value = masking.known.value  # the child masked what it knew; we may have read more secrets since it started
    match settlement["outcome"]:
        case "done":
            return Done(Json(json.dumps(value(settlement["result"]))))
        case "retry":
            return Retry(value(settlement["error"]), wait_for, settlement.get("pause"))
        case "fail":
            return Fail(value(settlement["error"]))
        case "snooze":
            return Snooze(wait_for or timedelta(0), settlement.get("pause"))
        case _:
            return Continue(value(settlement["cursor"]), settlement["cursor_was"])
