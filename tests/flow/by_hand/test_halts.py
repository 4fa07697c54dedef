"""A run that its handle pauses, resumes and stops, in both worlds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from psycopg import Connection

from holdfast import Holdfast
from holdfast.errors import WrongState
from holdfast.flow.define import Flow
from holdfast.flow.handle import FlowRun
from holdfast.testing import drain

pytestmark = pytest.mark.one_server

DB = Connection[Any]
Act = Callable[[Holdfast, FlowRun, str], None]


def plainly(_hf: Holdfast, handle: FlowRun, name: str) -> None:
    getattr(handle, name)(f"to {name}")


def on_a_loop(hf: Holdfast, handle: FlowRun, name: str) -> None:
    async def act() -> None:
        try:
            await getattr(handle, f"a{name}")(f"to {name}")
        finally:
            await hf.aclose()

    asyncio.run(act())


@pytest.fixture
def order(hf: Holdfast) -> Flow:
    order = hf.flow("order")

    @order.step
    def charge() -> int:
        return 1

    @order.step(after=charge)
    def ship(charge: int) -> int:
        return charge + 1

    return order


@pytest.mark.parametrize("act", [plainly, on_a_loop])
def test_nothing_of_a_paused_run_begins_and_a_stopped_one_is_taken_up_by_a_retry(
    hf: Holdfast, db: DB, order: Flow, act: Act
) -> None:
    handle = order.start()

    for name in ("pause", "pause"):  # again: it changes nothing
        act(hf, handle, name)
    assert drain(hf) == 0
    act(hf, handle, "resume")
    act(hf, handle, "stop")
    assert drain(hf) == 0
    assert handle.status().outcome is not None
    handle.retry()

    assert drain(hf) == 2
    assert handle.result()["ship"] == 2
    rows = db.execute("select event, reason from holdfast.run_changes order by id").fetchall()
    assert rows == [("paused", "to pause"), ("resumed", "to resume"), ("stopped", "to stop")]


@pytest.mark.parametrize("act", [plainly, on_a_loop])
@pytest.mark.parametrize("name", ["pause", "resume", "stop"])
def test_a_run_that_is_over_is_refused(hf: Holdfast, order: Flow, act: Act, name: str) -> None:
    handle = order.start()
    drain(hf)

    with pytest.raises(WrongState) as refused:
        act(hf, handle, name)

    assert str(handle.id) in str(refused.value)
    assert refused.value.next
