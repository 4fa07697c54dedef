"""A trace goes on from who starts a task to who runs it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from holdfast import Ctx, Event, Holdfast
from holdfast.errors import KeyConflict
from kernel.steps import DB
from worker.lanes import cpu
from worker.running import burst, error_of

SPANS = InMemorySpanExporter()


@pytest.fixture(scope="module", autouse=True)
def provider() -> None:
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(SPANS))
    trace.set_tracer_provider(made)


@pytest.fixture(autouse=True)
def spans() -> Iterator[None]:
    SPANS.clear()
    yield
    SPANS.clear()


def test_start_and_handler_are_of_one_trace(hf: Holdfast) -> None:
    """W-55: with spans around claim, processing and reporting, and the trace's id in the handler's hands."""
    seen: list[str | None] = []

    @hf.task
    def look(ctx: Ctx, x: int) -> int:
        seen.append(ctx.trace_id)
        return x

    with trace.get_tracer("test").start_as_current_span("asked") as asked:
        started = look.start(x=4)
    burst(hf)

    of_trace = format(asked.get_span_context().trace_id, "032x")
    made = {span.name: span for span in SPANS.get_finished_spans()}
    assert started.result(timeout=0) == 4
    assert seen == [of_trace]
    assert format(made["process look"].context.trace_id, "032x") == of_trace
    assert {"claim_steps", "settle_batch"} <= made.keys()


@pytest.mark.parametrize("apart", [False, True], ids=["in a thread", "in a process"])
def test_the_traces_id_is_in_the_workers_lines_and_beside_the_result(
    hf: Holdfast, db: DB, log_lines: list[dict[str, object]], apart: bool
) -> None:
    """W-55: in events too."""
    told: list[Event] = []
    hf.on("work.task.failed")(told.append)
    refuse = hf.task(cpu=apart)(cpu.refuse)
    with trace.get_tracer("test").start_as_current_span("asked") as asked:
        refuse.start()
    refuse.start()
    burst(hf, concurrency=1)

    of_trace = format(asked.get_span_context().trace_id, "032x")
    failed = [line.get("trace_id") for line in log_lines if line["event"] == "step.failed"]
    assert (len(failed), set(failed)) == (2, {of_trace, None})
    assert {event.payload["trace_id"] for event in told} == {of_trace, None}
    assert [row for (row,) in db.execute("select trace_id from work.tasks order by id")] == [of_trace, None]


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
@pytest.mark.parametrize("error", [ValueError("no user 17"), Unspeakable()], ids=["words", "no words"])
def test_an_exception_is_in_the_span_and_is_the_steps_own_error(
    hf: Holdfast, db: DB, error: Exception, is_async: bool
) -> None:
    """W-24: also one that fails to format, which OpenTelemetry itself would replace by another."""

    def odd() -> None:
        raise error

    async def aodd() -> None:
        raise error

    bad = hf.task(name="odd")(aodd if is_async else odd).start()
    burst(hf)

    (span,) = (each for each in SPANS.get_finished_spans() if each.name == "process odd")
    assert error_of(db, bad.id)["type"] == type(error).__name__
    assert span.status.status_code is trace.StatusCode.ERROR
    assert (span.status.description or "").startswith(type(error).__name__)
    assert [event.name for event in span.events] == ["exception"]


def test_all_steps_of_a_flow_are_of_the_trace_that_started_it(hf: Holdfast) -> None:
    """W-55: also those that take nothing else"""
    seen: list[str | None] = []
    order = hf.flow("order")

    @order.step
    def reserve(ctx: Ctx) -> list[int]:
        seen.append(ctx.trace_id)
        return [1]

    @order.step(each=reserve)
    def ship(ctx: Ctx, item: int) -> None:
        seen.append(ctx.trace_id)

    with trace.get_tracer("test").start_as_current_span("asked") as asked:
        order.start()
    burst(hf)

    assert seen == [format(asked.get_span_context().trace_id, "032x")] * 2


def test_without_a_trace_nothing_travels(hf: Holdfast) -> None:
    seen: list[str | None] = []

    @hf.task
    def look(ctx: Ctx) -> None:
        seen.append(ctx.trace_id)

    look.start()
    burst(hf)

    assert seen == [None]


def test_a_key_means_the_same_in_another_trace(hf: Holdfast) -> None:
    """The input of a key has to be the same each time, so the trace does not travel under one."""

    @hf.task
    def look(x: int) -> None: ...

    with trace.get_tracer("test").start_as_current_span("first"):
        first = look.options(key="k").start(x=1)
    with trace.get_tracer("test").start_as_current_span("second"):
        again = look.options(key="k").start(x=1)
        with pytest.raises(KeyConflict):
            look.options(key="k").start(x=2)

    assert again.id == first.id
