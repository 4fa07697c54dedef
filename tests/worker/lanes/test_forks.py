"""Handlers that fork: each attempt keeps its own outcome, and no copy of the worker stays behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from holdfast import Holdfast
from holdfast.testing import events
from kernel.steps import DB, step_row
from worker.lanes import cpu
from worker.running import burst, until

pytestmark = pytest.mark.one_server


@contextmanager
def ending(mark: Path) -> Iterator[None]:
    """End the process whose number a handler wrote, whatever comes of the test."""
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            os.kill(int(mark.read_text()), signal.SIGKILL)


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_process_whose_handler_forks_answers_for_each_attempt_once(hf: Holdfast) -> None:
    """W-33: the fork returns from the handler as well; its answer was taken for that of the next attempt."""
    task = hf.task(cpu=True)(cpu.fork)
    handles = [task.start(number=number) for number in range(6)]
    burst(hf, concurrency=1)

    assert [handle.result(timeout=1) for handle in handles] == list(range(6))


def test_an_answer_of_another_attempt_is_not_taken(hf: Holdfast, db: DB) -> None:
    """W-33: the process that sent it is killed, and the attempt is retried in a new one."""
    handle = hf.task(cpu=True)(cpu.answer_for_another).start()
    burst(hf, concurrency=1)

    assert handle.result(timeout=1) == "its own"
    assert events(db, step=handle.id) == ["claimed", "retried", "claimed", "succeeded"]


@pytest.mark.parametrize("handler", [cpu.close_all_files, cpu.leave_a_fork_behind])
def test_a_process_whose_pipe_says_nothing_of_its_end_costs_its_own_attempt(
    hf: Holdfast, db: DB, tmp_path: Path, handler: object
) -> None:
    """W-33: it lives and has closed the pipe, or is dead and a fork of it keeps the pipe open."""
    mark = tmp_path / "mark"
    hf.task(cpu=True)(cpu.pid).start()  # so that the process is up
    handle = hf.task(name="work", cpu=True)(handler).start(mark=str(mark))  # type: ignore[call-overload]
    with ending(mark):
        burst(hf, concurrency=1)

    assert handle.result(timeout=1) == 2
    assert events(db, step=handle.id) == ["claimed", "retried", "claimed", "succeeded"]


def fork(ends: str, mark: str) -> int:
    """Fork, and let the fork leave the handler by its own way; gives its exit code."""
    if pid := os.fork():
        Path(mark).write_text(str(pid))
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if ends == "exits":
        sys.exit(3)
    if ends == "raises":
        raise ValueError(ends)
    return -1


@pytest.mark.parametrize(("ends", "code"), [("returns", 0), ("exits", 3), ("raises", 1)])
@pytest.mark.parametrize("is_async", [False, True], ids=["thread", "loop"])
def test_a_fork_that_leaves_its_handler_ends(
    hf: Holdfast, db: DB, tmp_path: Path, ends: str, code: int, is_async: bool
) -> None:
    """W-33: it would go on as a copy of the worker. Its exit code is what another process's would be."""

    async def afork(ends: str, mark: str) -> int:
        return fork(ends, mark)

    mark = tmp_path / "mark"
    handle = hf.task(name="fork")(afork if is_async else fork).start(ends=ends, mark=str(mark))
    with ending(mark):
        burst(hf)

    assert handle.result(timeout=1) == code
    assert events(db, step=handle.id) == ["claimed", "succeeded"]


def test_a_fork_that_awaits_ends(hf: Holdfast, db: DB, tmp_path: Path) -> None:
    """W-33: it would go on with the loop, and with all handlers on it."""
    mark = tmp_path / "mark"

    @hf.task
    async def afork() -> None:
        never = asyncio.get_running_loop().create_future()
        if pid := os.fork():
            mark.write_text(str(pid))
        else:
            await never

    with ending(mark):
        handle = afork.start()
        burst(hf)
        assert step_row(db, handle.id)["state"] == "done"
        until(lambda: is_gone(int(mark.read_text())), "the end of the fork")
