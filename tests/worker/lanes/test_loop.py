"""The loop of async handlers: whatever ends it, the worker notices, says so and goes on with async work."""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Ctx, Holdfast, RetryPolicy
from holdfast.testing import events
from holdfast.worker.lanes import loop as lanes
from kernel.steps import DB
from worker.running import read, seconds, working

pytestmark = pytest.mark.one_server
TWICE = RetryPolicy(limit=2, base=seconds(0))


async def stop() -> None:
    asyncio.get_running_loop().stop()


async def exit_beside() -> None:
    async def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        await asyncio.create_task(leave())


async def interrupt_beside() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    asyncio.get_running_loop().call_soon(interrupt)


@pytest.mark.parametrize("end", [stop, exit_beside, interrupt_beside])
def test_a_handler_that_stops_the_loop_ends_no_async_work(
    hf: Holdfast, db: DB, log_lines: Any, end: Callable[[], Any]
) -> None:
    """W-33: what is under way goes on where it was, and later tasks run; each once."""
    began, go = threading.Event(), threading.Event()

    @hf.task
    async def wait() -> str:
        began.set()
        await asyncio.to_thread(go.wait, 30)
        return "waited"

    @hf.task
    async def stop_all() -> str:
        await end()
        return "stopped"

    @hf.task
    async def quick() -> str:
        return "quick"

    with working(hf):
        waiting = wait.start()
        assert read(began)
        stopping = stop_all.start()
        assert stopping.result(timeout=30) == "stopped"
        later = quick.start()
        assert later.result(timeout=30) == "quick"
        go.set()
        assert waiting.result(timeout=30) == "waited"

    for handle in (waiting, stopping, later):
        assert events(db, step=handle.id) == ["claimed", "succeeded"]
    (line,) = [line for line in log_lines if line["event"] == "loop.stopped"]
    assert (line["log_level"], "wait" in line["kinds"]) == ("error", True)


class Breaking(selectors.DefaultSelector):
    """A selector that fails when it is told to, as one whose descriptor somebody closed."""

    is_broken = False

    def select(self, timeout: float | None = None) -> Any:
        if self.is_broken:
            raise OSError(9, "Bad file descriptor")
        return super().select(timeout)


def test_a_loop_that_cannot_go_on_is_replaced(
    hf: Holdfast, db: DB, log_lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W-33, W-24: its attempts are retried, and what they wrote is undone at once."""
    db.execute("create table effects (attempt int)")
    selector = Breaking()
    loops = [asyncio.SelectorEventLoop(selector)]
    fresh = lanes.new_loop
    monkeypatch.setattr(lanes, "new_loop", lambda: loops.pop() if loops else fresh())

    @hf.task(retry=TWICE)
    async def work(ctx: Ctx) -> int:
        async with ctx.transaction() as tx:
            await tx.execute("lock table effects")
            await tx.execute("insert into effects values (%s)", [ctx.attempt])
            if ctx.attempt == 1:
                selector.is_broken = True
                await asyncio.get_running_loop().create_future()
        return ctx.attempt

    with working(hf):
        handle = work.start()
        assert handle.result(timeout=30) == 2

    assert events(db, step=handle.id) == ["claimed", "retried", "claimed", "succeeded"]
    assert db.execute("select attempt from effects").fetchall() == [(2,)]
    (line,) = [line for line in log_lines if line["event"] == "loop.broken"]
    assert (line["log_level"], line["kinds"]) == ("error", ["work"])
