"""What a caller holds of a task that was started: waiting, steering, and what is raised when it went wrong."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Holdfast, RunCancelled, RunFailed, WaitTimedOut
from holdfast.errors import NotFound, WrongState
from holdfast.testing import events
from kernel.steps import DB
from worker.running import burst

pytestmark = pytest.mark.one_server


@pytest.fixture
def count(hf: Holdfast) -> Any:
    @hf.task
    def count(number: int) -> int:
        if number < 0:
            raise ValueError("below zero")
        return number

    return count


def test_what_failed_raises_with_type_message_and_the_way_on(hf: Holdfast, count: Any) -> None:
    """W-11, W-58."""
    handle = count.start(number=-1)
    burst(hf)

    with pytest.raises(RunFailed, match=rf"{handle.id} .*ValueError: below zero"):
        handle.result()


def test_what_was_cancelled_raises(hf: Holdfast, count: Any) -> None:
    """W-32."""
    handle = count.start(number=1)
    handle.cancel("not needed")
    burst(hf)

    with pytest.raises(RunCancelled, match=str(handle.id)):
        handle.result()
    with pytest.raises(WrongState, match="cancelled"):
        handle.cancel()


def test_a_wait_that_is_too_short_says_that_it_goes_on(count: Any) -> None:
    """W-33."""
    handle = count.start(number=1)

    with pytest.raises(WaitTimedOut, match=str(handle.id)):
        handle.result(timeout=0)
    assert handle.status().state == "pending"


def test_what_failed_may_be_tried_again(hf: Holdfast, db: DB, count: Any) -> None:
    """W-32, C-65: manual intervention, journaled."""
    handle = count.start(number=-1)
    burst(hf)
    handle.retry("mended")
    burst(hf)

    assert events(db, step=handle.id) == ["claimed", "failed", "reopened", "claimed", "failed"]


def test_what_did_not_fail_is_not_tried_again(hf: Holdfast, count: Any) -> None:
    """W-31: done is final."""
    handle = count.start(number=1)
    burst(hf)

    with pytest.raises(WrongState):
        handle.retry()


def test_a_step_that_is_not_there_is_not_found(hf: Holdfast) -> None:
    with pytest.raises(NotFound, match="404"):
        hf.handle(404).result(timeout=1)


def test_each_way_has_an_async_twin(hf: Holdfast, db: DB, count: Any) -> None:
    """W-09."""

    async def story() -> list[Any]:
        good, bad, gone = [await count.astart(number=n) for n in (1, -1, 2)]
        await gone.acancel()
        await asyncio.to_thread(burst, hf)
        found: list[Any] = [await good.aresult(timeout=5)]
        for handle in (bad, gone):
            with pytest.raises((RunFailed, RunCancelled)) as raised:
                await handle.aresult()
            found.append(raised.type)
        await bad.aretry()
        with pytest.raises(WaitTimedOut):
            await bad.aresult(timeout=0)
        found.append((await bad.astatus()).state)
        await hf.aclose()
        return found

    assert asyncio.run(story()) == [1, RunFailed, RunCancelled, "pending"]


def test_many_loops_may_use_one_app(hf: Holdfast, db: DB, count: Any) -> None:
    """W-09: each loop has connections of its own."""

    async def once() -> int:
        handle = await count.astart(number=1)
        await hf.aclose()
        return int(handle.id)

    assert len({asyncio.run(once()) for _ in range(3)}) == 3
