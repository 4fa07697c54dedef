"""Traces that lead from the caller that starts a task to the worker that runs it, if OpenTelemetry is installed.

The context travels in the input beside the arguments, as W3C's `traceparent`. A span surrounds each claim and
settle of a worker and each handler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from traceback import format_exception
from typing import Any

from holdfast import masking

try:
    from opentelemetry import propagate, trace
except ImportError:  # the extra `otel` installs it
    HAS_TRACES = False
else:
    HAS_TRACES = True

NOTHING: AbstractContextManager[Any] = nullcontext()


def is_on() -> bool:
    """Return whether spans are collected; without a provider each would cost more than a small task."""
    return HAS_TRACES and not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def carrier() -> dict[str, str] | None:
    """Return the current trace context as text, or None."""
    if not HAS_TRACES or not trace.get_current_span().get_span_context().is_valid:
        return None
    written: dict[str, str] = {}
    propagate.inject(written)
    return written or None


def span(
    name: str, came_with: Mapping[str, str] | None = None, fields: Mapping[str, str | int] | None = None
) -> AbstractContextManager[Any]:
    """Make a span around a block, as a child of the input's context or of the current span."""
    if not is_on():
        return NOTHING
    parent = propagate.extract(came_with) if came_with else None
    return _masked_span(name, parent, fields)


@contextmanager
def _masked_span(name: str, parent: Any, fields: Mapping[str, str | int] | None) -> Iterator[Any]:
    """Make a span whose exception and attributes, also those that a handler sets, contain no secret."""
    text, shown = masking.known.text, masking.known.shown
    with trace.get_tracer("holdfast").start_as_current_span(
        text(name), context=parent, attributes=fields, record_exception=False, set_status_on_exception=False
    ) as made:
        try:
            yield made
        except BaseException as error:
            kind, message = type(error).__qualname__, shown(_message(error))
            about = {"exception.type": kind, "exception.message": message}
            made.add_event("exception", {**about, "exception.stacktrace": shown("".join(format_exception(error)))})
            made.set_status(trace.Status(trace.StatusCode.ERROR, f"{kind}: {message}" if message else kind))
            raise
        finally:
            for key, value in dict(getattr(made, "attributes", None) or {}).items():
                if (masked := shown({key: value})[key]) is not value:
                    made.set_attribute(key, masked)


def trace_id(came_with: Mapping[str, str] | None) -> str | None:
    """Read the trace id from a context, with or without OpenTelemetry."""
    parts = str((came_with or {}).get("traceparent", "")).split("-")
    return parts[1] if len(parts) == 4 else None


def _message(error: BaseException) -> str:
    """Return an exception's text; OpenTelemetry would raise for one that fails to format."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a handler's exception may do anything
        return ""
