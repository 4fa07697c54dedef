"""Outcomes, results, errors and inputs that cannot be kept or read: each costs its own step, and no other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Continue, Ctx, Fail, Holdfast, Retry
from holdfast.flow.events import Event
from holdfast.kernel import calls
from holdfast.kernel.db import run
from kernel.steps import DB, step_row
from worker.running import burst, error_of, metric

pytestmark = pytest.mark.one_server
SECRET = "hunter2"
TOO_LARGE = "x" * 2_000_000


def changed(outcome: Retry, after: Any) -> Retry:
    outcome.after = after
    return outcome


UNKEPT = {
    "a time that was changed": changed(Retry("x", after=1), after="soon"),
    "a cursor that is no JSON": Continue({1, 2}),
    "a cursor that holds itself": Continue(loop := [], loop.append(loop)),
    "a cursor with a NUL": Continue("a\0b"),
    "a cursor with a lone surrogate": Continue("\ud800"),
    "a cursor that is no number": Continue(float("inf")),
    "an error that is no JSON": Fail(object()),
    "an error with keys that are no text": Fail({(1, 2): 3}),
    "an error with a NUL": Fail({"message": "a\0b"}),
}


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
@pytest.mark.parametrize("outcome", UNKEPT.values(), ids=UNKEPT.keys())
def test_an_outcome_that_makes_no_sense_fails_its_step_alone(
    hf: Holdfast, db: DB, outcome: Exception, is_async: bool
) -> None:
    """W-33: the worker goes on; the batch beside it settles."""

    def odd() -> None:
        raise outcome

    async def aodd() -> None:
        raise outcome

    @hf.task
    def even() -> int:
        return 1

    task = hf.task(name="odd")(aodd if is_async else odd)
    bad, good = task.start(), even.start()
    burst(hf)

    assert good.result() == 1
    assert step_row(db, bad.id)["state"] == "error"
    assert error_of(db, bad.id)["message"]


@pytest.mark.parametrize(
    "gives",
    [lambda: {"at": object()}, lambda: "a\0b", lambda: {"k\0": 1}, lambda: "\ud800", lambda: "x" * 2_000_000],
    ids=["no JSON", "NUL", "NUL in a key", "lone surrogate", "2 MB"],
)
def test_a_result_that_cannot_be_kept_fails_its_step_alone(hf: Holdfast, db: DB, gives: object) -> None:
    """W-10: and says why."""

    @hf.task
    def odd():  # type: ignore[no-untyped-def]
        return gives()  # type: ignore[operator]

    @hf.task
    def even() -> int:
        return 1

    bad, good = odd.start(), even.start()
    burst(hf)

    assert good.result() == 1
    assert step_row(db, bad.id)["state"] == "error"
    assert error_of(db, bad.id)["message"]


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "error",
    [ValueError("a\0b \ud800"), Unspeakable(), SystemExit(3), KeyboardInterrupt(), ValueError("x" * 5_000_000)],
    ids=["NUL and surrogate", "no words", "exit", "interrupt", "5 MB"],
)
def test_an_exception_of_any_sort_is_stored_and_the_worker_goes_on(hf: Holdfast, db: DB, error: BaseException) -> None:
    """W-24, W-33, W-58."""

    @hf.task
    def odd() -> None:
        raise error

    @hf.task
    def even() -> int:
        return 1

    bad, good = odd.start(), even.start()
    burst(hf)

    assert good.result() == 1
    assert error_of(db, bad.id)["type"] == type(error).__name__


def test_an_async_handler_that_was_cancelled_by_none_of_ours_has_failed(hf: Holdfast, db: DB) -> None:
    """W-24: a CancelledError of its own making is an exception like others."""

    @hf.task
    async def odd() -> None:
        raise asyncio.CancelledError

    started = odd.start()
    burst(hf)

    assert error_of(db, started.id)["type"] == "CancelledError"


def test_an_input_that_no_longer_fits_after_a_deploy_fails_that_step_and_says_what_to_do(hf: Holdfast, db: DB) -> None:
    """W-52: the row stays; mended, it can be retried."""

    @hf.task
    def greet(name: str) -> str:
        return name

    (bad,) = run(db, calls.start_task("greet", {"nmae": SECRET, "age": 3}))
    good = greet.start(name="ann")
    burst(hf)

    assert good.result() == "ann"
    error = error_of(db, bad)
    assert error["type"] == "InputRefused"
    assert "name" in error["message"]
    assert f"dlq retry {bad}" in error["next"]
    assert SECRET not in json.dumps(error)


@pytest.mark.parametrize("column", ["input", "cursor"])
def test_json_that_python_cannot_read_fails_that_step_alone(hf: Holdfast, db: DB, column: str) -> None:
    """W-33: PostgreSQL keeps what is nested deeper than Python reads."""

    @hf.task
    def greet(ctx: Ctx, name: object) -> int:
        return 1

    deep = "[" * 4000 + "]" * 4000
    bad, good = greet.start(name=1), greet.start(name=2)
    given = f'{{"name": {deep}}}' if column == "input" else deep
    db.execute(f"update holdfast.steps set {column} = %s::jsonb where id = %s", [given, bad.id])
    burst(hf)

    assert good.result() == 1
    found = db.execute("select state, error ->> 'next' from holdfast.steps where id = %s", [bad.id]).fetchone()
    assert found is not None
    assert found[0] == "error"
    assert "holdfast dlq retry" in found[1]


def _large_result(_ctx: Ctx) -> str:
    return TOO_LARGE


def _large_cursor(_ctx: Ctx) -> str:
    raise Continue(TOO_LARGE)


def _large_in_a_transaction(ctx: Ctx) -> str:
    with ctx.transaction() as tx:
        tx.execute("select 1")
    return TOO_LARGE


@pytest.mark.parametrize("handler", [_large_result, _large_cursor, _large_in_a_transaction])
def test_a_result_that_is_too_large_is_told_as_the_failure_that_it_is(
    hf: Holdfast, db: DB, log_lines: Any, handler: Callable[[Ctx], str]
) -> None:
    """In the log, to subscribers, in the metrics and in the worker's states; a retry would not help."""
    told: list[Event] = []
    hf.on("flow.step.failed")(told.append)
    report = hf.flow("report")
    report.step(name="write", retry=3)(handler)

    run_of_it = report.start()
    worker = burst(hf)

    (event,), (step,) = told, run_of_it.steps()
    assert event.payload["error"]["type"] == step.error["type"] == "TooLarge"
    assert event.payload["error"]["message"] == step.error["message"]
    assert event.payload["will_retry"] is False
    assert [line["error"] for line in log_lines if line["event"] == "step.failed"] == ["TooLarge"]
    assert metric(worker, "holdfast_settled_total", kind="report.write", event="failed") == 1
    assert ("processing", "reporting_success") not in worker.states.moves
    assert worker.states.moves["processing", "reporting_failure"] == 1


def test_a_failure_is_told_though_its_reason_cannot_be_read(hf: Holdfast, db: DB) -> None:
    """The outcome is settled by then: it is not settled again, and not taken for a success."""
    told: list[Event] = []
    hf.on("work.task.*")(told.append)
    db.execute("drop function holdfast.step_results")
    hf.task(name="large")(_large_result).start()

    worker = burst(hf)

    (event,) = told
    assert (event.name, event.payload["error"]["type"]) == ("work.task.failed", "TooLarge")
    assert metric(worker, "holdfast_worker_errors_total") == 0
