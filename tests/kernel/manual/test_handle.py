"""One protocol of handles, whatever was started: what it reads, raises and does, sync and async alike."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast import Ctx, Handle, Holdfast, RunCancelled, RunFailed
from holdfast.errors import BadInput, NotFound, WrongState
from kernel.steps import DB
from worker.running import burst

pytestmark = pytest.mark.one_server
Start = Callable[[bool], Handle[Any]]


@pytest.fixture
def hf(dsn: str) -> Iterator[Holdfast]:
    app = Holdfast(dsn)
    yield app
    app.close()


@pytest.fixture(params=["task", "flow"])
def start(hf: Holdfast, request: pytest.FixtureRequest) -> Start:
    """Give a function that starts a task or a run; it succeeds, or fails for good."""

    def charge(ctx: Ctx, works: bool) -> int:
        ctx.note("asked the bank", amount=7)
        if not works:
            raise ValueError("no such account")
        return 7

    if request.param == "task":
        task = hf.task(charge)
        return lambda works: task.start(works=works)
    order = hf.flow("order")
    order.step(retry=1)(charge)
    return lambda works: order.start(works=works)


def plain(result: Any) -> Any:
    return result["charge"] if isinstance(result, dict) else result


def test_a_status_has_one_shape(hf: Holdfast, start: Start) -> None:
    good, bad, new = start(True), start(False), hf.handle(start(True).id)
    before = new.status()
    new.cancel("not wanted")
    burst(hf)

    ended, failed, cancelled = good.status(), bad.status(), new.status()
    assert (before.id, before.phase, before.outcome, before.finished_at) == (new.id, "open", None, None)
    assert (ended.phase, ended.outcome, ended.error) == ("over", "succeeded", None)
    assert (failed.outcome, failed.attempts, failed.error["type"]) == ("failed", 1, "ValueError")
    assert (cancelled.outcome, cancelled.reason) == ("cancelled", "not wanted")
    for each in (ended, failed):
        assert each.started_at is not None
        assert each.finished_at is not None
        assert each.created_at <= each.started_at <= each.finished_at


def test_a_failure_carries_its_parts(hf: Holdfast, start: Start) -> None:
    bad = start(False)
    burst(hf)

    with pytest.raises(RunFailed) as raised:
        bad.result()

    error = raised.value
    is_task = isinstance(bad.id, int)
    assert (error.run_id, error.step) == (bad.id, None if is_task else "charge")
    assert (error.error_type, error.message, error.attempts) == ("ValueError", "no such account", 1)
    assert error.traceback is not None
    assert 'raise ValueError("no such account")' in error.traceback
    assert str(error).startswith(f"{'task' if is_task else 'run'} {bad.id} failed: ")
    assert vars(pickle.loads(pickle.dumps(error))) == vars(error)


def test_what_was_cancelled_says_why(hf: Holdfast, start: Start) -> None:
    handle = start(True)
    handle.cancel("a double")

    with pytest.raises(RunCancelled) as raised:
        handle.result()

    assert (raised.value.run_id, raised.value.reason) == (handle.id, "a double")


def test_its_events_are_its_moves_and_notes_in_order(hf: Holdfast, start: Start) -> None:
    bad = start(False)
    burst(hf)
    assert bad.retry("the account is there").id == bad.id
    burst(hf)

    events = bad.events()
    of_step = [(event.kind, event.event) for event in events if event.step_id is not None]
    assert [event.id for event in events] == sorted(event.id for event in events)
    once = [("move", "claimed"), ("note", "info"), ("move", "failed")]
    assert [each for each in of_step if each[1] not in {"queued", "started"}] == [*once, ("move", "reopened"), *once]
    note, failed = (next(event for event in events if event.event == name) for name in ("info", "failed"))
    assert (note.message, note.payload, note.from_state, note.attempt) == ("asked the bank", {"amount": 7}, None, 1)
    assert (failed.actor_kind, failed.payload["message"], failed.to_state) == ("worker", "no such account", "error")
    assert {"the account is there"} == {event.message for event in events if event.event == "reopened"}
    if not isinstance(bad.id, int):
        assert {event.step for event in events} == {None, "charge"}
        assert next(event.event for event in events if event.step is None) == "created"


def test_what_is_resolved_passes_on_the_result_given(hf: Holdfast, start: Start) -> None:
    bad = start(False)
    burst(hf)

    if isinstance(bad.id, int):
        bad.resolve("paid in cash", result=8)
    else:
        bad.resolve("paid in cash", step="charge", result=8)  # type: ignore[call-arg]

    assert plain(bad.result(timeout=1)) == 8


def test_each_way_has_an_async_twin_and_a_handle_is_awaited(hf: Holdfast, start: Start) -> None:
    """W-09."""

    async def story(good: Handle[Any], bad: Handle[Any], gone: Handle[Any]) -> None:
        assert (await good.astatus()).outcome is None
        await gone.acancel("not wanted")
        await asyncio.to_thread(burst, hf)
        assert plain(await good) == plain(await good.aresult(timeout=1)) == 7
        with pytest.raises(RunCancelled, match="not wanted"):
            await gone
        with pytest.raises(RunFailed):
            await bad
        assert (await bad.aretry("mended")).id == bad.id
        await asyncio.to_thread(burst, hf)
        assert [event.event for event in await bad.aevents()].count("failed") == 2
        for_step = {} if isinstance(bad.id, int) else {"step": "charge"}
        await bad.aresolve("paid in cash", result=8, **for_step)
        assert plain(await bad) == 8
        await hf.aclose()

    asyncio.run(story(start(True), start(False), start(True)))


@pytest.mark.parametrize("odd", [None, True, 7.5, b"7", -1, "seven", 10**20, [7]], ids=str)
def test_what_is_no_id_is_refused(hf: Holdfast, odd: Any) -> None:
    with pytest.raises(BadInput) as raised:
        hf.handle(odd)

    assert raised.value.where == "id"
    assert repr(odd) in raised.value.what


def test_a_step_that_is_given_as_the_reason_is_refused(hf: Holdfast) -> None:
    order = hf.flow("order")
    charge = order.step(name="charge")(lambda: 1)
    run = order.start()

    for act in (run.cancel, run.retry, run.resolve):
        with pytest.raises(BadInput) as raised:
            act(charge)
        assert raised.value.where == "reason"
    assert run.status().outcome is None


def test_what_is_not_there_is_not_found(hf: Holdfast, db: DB) -> None:
    for handle in (hf.handle(404), hf.handle("00000000-0000-7000-8000-000000000404")):
        for read in (handle.status, handle.result, handle.events):
            with pytest.raises(NotFound, match="404"):
                read()
    with pytest.raises((NotFound, WrongState)):
        hf.handle(404).resolve("never mind")
