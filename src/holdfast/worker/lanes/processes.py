"""Handlers that burn CPU, each in a process of its own: they hold up no other, and can be ended for real.

A thread of the worker sends a child one attempt at a time and waits for its answer. A child that dies costs that
attempt and no other; one whose time is up or whose lease is lost is killed. It ends with its parent, however that ends.
A child's handler may fork. The fork has the child's pipes too, so a death is noticed by process id where it can be.
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
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache, reduce
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any
from uuid import UUID

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
from holdfast.worker.execute import Interrupted, Unfit, attempt, outcome_of
from holdfast.worker.exit_codes import STOPS
from holdfast.worker.lanes.waiting import Run

SPAWN = multiprocessing.get_context("spawn")  # not fork: the worker has threads
NAME = "holdfast-cpu"


def run_in_child(dsn: str) -> Run:
    """Give a way to run attempts, with one child for each thread that uses it."""
    mine = threading.local()

    def run(one: Attempt) -> Outcome | None:
        child: Child | None = getattr(mine, "child", None)
        if child is None or not child.process.is_alive():
            child = mine.child = Child(dsn)
        return child.run(one)

    return run


class Child:
    """One process that runs attempts."""

    def __init__(self, dsn: str) -> None:
        self._pipe, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(target=_serve, args=(theirs, dsn), daemon=True, name=NAME)
        self.process.start()
        theirs.close()
        forks.own(self._pipe)
        self._death = _death_of(self.process)
        self._lock = threading.Lock()
        self._current: Attempt | None = None

    def interrupt(self, one: Attempt) -> None:
        """Kill the process, if it still runs that attempt: the one after it must not be hit."""
        with self._lock:
            if self._current is one:
                self.process.kill()

    def run(self, one: Attempt) -> Outcome | None:
        """Have an attempt run, and wait for what came of it."""
        if isinstance(one.step.cursor, Unreadable):
            raise Unfit(f"the cursor cannot be read: {one.step.cursor.reason}")
        one.begin()
        self._current = one
        one.interrupt = self.interrupt
        while (answer := self._ask(one)) == _late(one):
            one.check_lease()  # it may have been renewed meanwhile
        with self._lock:
            self._current = None
        if answer is None:
            return self._ended(one, "its process died")
        if answer.get("of") != _numbers(one):
            return self._ended(one, "its process answered for another attempt")
        one.settled = SettledStep(*answer["settled"]) if answer["settled"] else None
        return _outcome(answer["outcome"])

    def _ask(self, one: Attempt) -> dict[str, Any] | None:
        try:
            return self._answer(_packed(one))
        except BaseException:  # else its answer would be taken for that of the next
            self.process.kill()
            raise

    def _answer(self, work: bytes) -> dict[str, Any] | None:
        try:
            self._pipe.send_bytes(work)
            wait([self._pipe, self._death])
            answer = json.loads(self._pipe.recv_bytes()) if self._pipe.poll() else None
        except (EOFError, OSError):  # it died, now or while it had nothing to do
            return None
        except ValueError:  # something else wrote to its pipe
            return {}
        return answer if isinstance(answer, dict) else None

    def _ended(self, one: Attempt, why: str) -> Outcome | None:
        """End the process, which may live and have closed its pipe; waited for alone, it would hold up the attempt."""
        self.process.kill()
        self.process.join()
        if one.ctx.cancelled:
            return outcome_of(one, Interrupted())
        return Retry({"type": "ProcessDied", "message": f"{why}; its exit code was {self.process.exitcode}"})


def _death_of(process: BaseProcess) -> int:
    """Give a descriptor that is ready when the process is dead. Its own sentinel waits for the forks of it too."""
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


@atexit.register  # later than multiprocessing's own, and so before it
def _end_children() -> None:
    """Kill what waits for work: asked by SIGTERM, which they leave to us, they would be waited for without end."""
    for process in multiprocessing.active_children():
        if process.name == NAME:
            process.kill()


def _packed(one: Attempt) -> bytes:
    handler, step = one.handler, one.step
    span = None if handler.timeout is None else handler.timeout.total_seconds()
    work = {
        "module": handler.function.__module__,
        "name": handler.function.__qualname__,
        "kind": handler.kind,
        "is_retried": handler.retry is not None,
        "timeout": span,
        "worker": one.ctx.worker,
        "lease": one.lease,
        "renewed_at": one.renewed_at,
        "step": [step.step_id, None if step.run_id is None else str(step.run_id), step.attempt, step.lease_id],
        "input": step.input,
        "cursor": step.cursor,
    }
    return json.dumps(work).encode()


def _serve(pipe: Connection, dsn: str) -> None:
    """Run in the child until the parent is gone. A signal that is sent to all processes is the parent's to heed."""
    for number in STOPS:
        signal.signal(number, lambda _number, _frame: None)  # not SIG_IGN: what a handler starts would inherit it
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


def _answer(one: Attempt) -> dict[str, Any]:
    """Run an attempt, and give what came of it."""
    failpoint("before_attempt_apart")
    outcome = attempt(one)
    failpoint("after_attempt_apart")
    if isinstance(outcome, Release):
        return _late(one)
    said = None if outcome is None else as_json(one.settlement(outcome))
    return {"of": _numbers(one), "outcome": said, "settled": one.settled}


def _late(one: Attempt) -> dict[str, Any]:
    """Give the answer of a child in which the lease had run out before the handler began."""
    return {"of": _numbers(one), "is_late": True}


def _numbers(one: Attempt) -> list[int]:
    return [one.step.step_id, one.step.lease_id]


def _end_with(parent: BaseProcess) -> None:
    pidfd = _pidfd(parent.pid or 0)
    if pidfd is None:
        parent.join()
    elif os.getppid() == parent.pid:  # else it is gone, and another process may have its number
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
    """What names a handler across processes."""

    module: str
    name: str
    kind: str
    is_retried: bool
    timeout: float | None


@lru_cache
def _handler(work: Work) -> Handler:
    found: Any = reduce(getattr, work.name.split("."), importlib.import_module(work.module))
    function = found.handler.function if hasattr(found, "handler") else found
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


def _outcome(said: dict[str, Any] | None) -> Outcome | None:
    if said is None:
        return None
    after = said.get("retry_after")
    wait_for = None if after is None else timedelta(seconds=float(after.removesuffix(" s")))
    match said["outcome"]:
        case "done":
            return Done(Json(json.dumps(said["result"])))
        case "retry":
            return Retry(said["error"], wait_for)
        case "fail":
            return Fail(said["error"])
        case "snooze":
            return Snooze(wait_for or timedelta(0))
        case _:
            return Continue(said["cursor"], said["cursor_was"])
