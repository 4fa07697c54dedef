"""NaN and infinity: JSON has no such numbers, so they are refused where they are given, by their place."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from holdfast import Continue, Ctx, Holdfast, RetryPolicy
from holdfast.errors import BadInput, ResultMismatch
from holdfast.handlers.signature import ResultRefused, Signature
from holdfast.testing import drain
from kernel.steps import DB, value
from worker.running import burst, error_of, seconds

pytestmark = pytest.mark.one_server
NAN, INFINITY = math.nan, math.inf


class Reading(BaseModel):
    number: float | None = None
    inner: list[Any] = []


class AsText(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="strings")
    number: float


class AsConstant(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="constants")
    number: float


class Exact(BaseModel):
    number: Annotated[Decimal, Field(allow_inf_nan=True)]


@dataclass
class Point:
    x: float
    y: Any = None


LOST = [
    (float, NAN, ""),
    (Any, -INFINITY, ""),
    (float | None, INFINITY, ""),
    (list[float], [1.0, NAN], "1"),
    (dict[str, Any], {"a": {"b": (None, NAN)}}, "a.b.1"),
    (Any, {1: [NAN]}, "1.0"),
    (Any, {NAN: 1}, "nan"),
    (Reading, Reading(number=NAN), "number"),
    (Reading, Reading(inner=[Reading(number=INFINITY)]), "inner.0.number"),
    (Any, [Reading(number=NAN)], "0.number"),
    (Point, Point(1.0, Decimal("-Infinity")), "y"),
    (Any, Decimal("NaN"), ""),
    (Any, {"sum": Decimal("sNaN")}, "sum"),
    (AsConstant, AsConstant(number=NAN), "number"),
    (Any, {"a": {NAN}}, "a.0"),
]
KEPT = [
    (Any, None),
    (Any, ["NaN", "Infinity", "null", "None", None, Decimal("1.5"), 0.0]),
    (Reading, Reading()),
    (Point, Point(1.0)),
    (AsText, AsText(number=INFINITY)),
    (Exact, Exact(number=Decimal("-Infinity"))),
]


def signature_of(hint: Any) -> Signature:
    def handler(given: Any) -> Any: ...

    handler.__annotations__ = {"given": hint, "return": hint}
    return Signature(handler)


@pytest.mark.parametrize(("hint", "number", "place"), LOST)
def test_a_number_that_json_cannot_hold_is_refused_by_its_place(hint: Any, number: Any, place: str) -> None:
    """W-09, W-10: as an argument and as a result, however deep"""
    signature = signature_of(hint)

    with pytest.raises(BadInput) as refused:
        signature.write(signature.check((number,), {}))
    assert f"{f'given.{place}' if place else 'given'} must be finite" in str(refused.value)
    with pytest.raises(ResultRefused) as result:
        signature.write_result(number)
    assert f"{place or 'the result'} must be finite" in str(result.value)


@pytest.mark.parametrize(("hint", "given"), KEPT)
def test_what_comes_back_as_it_was_is_kept(hint: Any, given: Any) -> None:
    """W-10: None, words such as NaN, and types that write such numbers as text"""
    signature = signature_of(hint)

    written = signature.write(signature.check((given,), {}))

    assert (
        signature.read_result(signature.read(written)["given"], "a test") == signature_of(hint).read(written)["given"]
    )
    signature.write_result(given)


def test_every_way_to_start_refuses_and_starts_nothing(hf: Holdfast, db: DB) -> None:
    """W-09, T-16: tasks one by one and by COPY, flows by fields, by a model and by a schema"""

    @hf.task
    def measure(number: float) -> None: ...

    flow, typed = hf.flow("plain"), hf.flow("typed", context=Reading)
    checked = hf.flow("checked", context={"type": "object", "properties": {"number": {"type": "number"}}})

    @flow.step
    def first(number: float) -> None: ...

    for each in (typed, checked):
        each.step(name="only")(lambda: None)

    for start in (
        measure.start,
        lambda number: asyncio.run(measure.astart(number)),
        lambda number: measure.start_many([{"number": 1.0}, {"number": number}]),
        flow.start,
        typed.start,
        checked.start,
    ):
        with pytest.raises(BadInput) as refused:
            start(number=NAN)
        assert "number must be finite, got nan" in str(refused.value)
    assert value(db, "select (select count(*) from holdfast.runs) + (select count(*) from holdfast.steps)") == 0


def test_a_step_that_returns_one_fails_and_names_its_place(hf: Holdfast, db: DB) -> None:
    """W-10, T-53: for good, whatever its policy; so does one that gives a sub-flow its context"""
    inner, flow = hf.flow("inner"), hf.flow("outer")

    @inner.step
    def weigh(weight: float) -> float:
        return weight

    @flow.subflow(inner)
    def opened() -> dict[str, Any]:
        return {"weight": NAN}

    @hf.task(retry=RetryPolicy(limit=5, base=seconds(0)))
    def measure() -> dict[str, list[float]]:
        return {"series": [1.0, INFINITY]}

    started, run = measure.start(), flow.start()
    drain(hf)

    (step,) = [step for step in run.steps() if step.name == "opened"]
    assert (error_of(db, started.id)["type"], step.error["type"]) == ("ResultRefused", "ResultRefused")
    assert "series.1 must be finite" in error_of(db, started.id)["message"]
    assert "weight must be finite" in step.error["message"]


def test_notes_cursors_and_results_given_by_hand_are_refused(hf: Holdfast, db: DB) -> None:
    """W-09, T-53"""
    flow = hf.flow("plain")

    @flow.step
    def only() -> None: ...

    @hf.task
    def note(ctx: Ctx) -> None:
        ctx.note("weighed", weight=[NAN])

    @hf.task
    def turn(ctx: Ctx) -> None:
        raise Continue({"page": NAN})

    run, noted, turned = flow.start(), note.start(), turn.start()
    with pytest.raises(BadInput) as refused:
        run.resolve("by hand", step="only", result={"sum": -INFINITY})
    drain(hf)

    assert (refused.value.where, "-inf" in refused.value.what) == ("sum", True)
    assert error_of(db, noted.id)["type"] == "BadInput"
    assert "weight.0 must be finite" in error_of(db, noted.id)["message"]
    assert "page must be finite" in error_of(db, turned.id)["message"]


def test_a_stored_result_that_does_not_fit_is_told_in_our_words(hf: Holdfast, db: DB) -> None:
    """W-10, T-85: by wait() and result(), of a task, a step and an item; with the task and the place"""
    flow = hf.flow("plain")

    @hf.task
    def measure() -> Reading:
        return Reading()

    @flow.step
    def items() -> list[int]:
        return [1, 2]

    @flow.step(each=items)
    def weigh(item: int) -> Point:
        return Point(1.0)

    started, run = measure.start(), flow.start()
    burst(hf)
    db.execute("""update holdfast.steps set result = '{"x": "odd", "number": "odd"}' where result ?| '{x,number}'""")

    with pytest.raises(ResultMismatch) as of_task:
        started.result()
    with pytest.raises(ResultMismatch) as of_run:
        run.result()
    with pytest.raises(ResultMismatch):
        run.result_of("weigh")

    assert f"task {started.id}" in str(of_task.value)
    assert "number:" in str(of_task.value)
    assert str(run.id) in str(of_run.value)
    assert "item 0 of step weigh" in str(of_run.value)
    assert "x:" in str(of_run.value)
