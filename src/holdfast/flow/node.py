"""A step of a flow: what users hold of it, and how the flow's shape has it."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from holdfast.errors import BadTask
from holdfast.flow.backoff import StepRetry
from holdfast.flow.options import StepOptions, is_count
from holdfast.handlers.registry import Handler, RetryPolicy
from holdfast.models import span

if TYPE_CHECKING:
    from holdfast.flow.define import Flow

P = ParamSpec("P")
R = TypeVar("R")
_OPTIONS = tuple(each.name for each in fields(StepOptions))
_SHAPE = ("name", "after", "each")  # what else a step may say, of its place in the flow
LIMIT = 3  # executions of a step, the first included


class Step(Generic[P, R]):
    """A step of a flow. Calling it runs its function here and now, as any function."""

    def __init__(self, name: str, handler: Handler, function: Callable[P, R]) -> None:
        self.name = name
        self.handler = handler
        self._function = function  # as it was written
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run it here, without the database."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<step {self.handler.kind}>"


After = Step[Any, Any] | str | Sequence[Step[Any, Any] | str]


@dataclass(frozen=True, slots=True)
class Node:
    """A step as the flow's shape has it."""

    name: str
    after: tuple[str, ...]
    options: StepOptions
    limit: int
    kind: str  # of the row that is planned
    each: str | None = None
    inner: Flow | None = None

    def planned(self) -> dict[str, Any]:
        """Write it down as a plan has it."""
        options = self.options
        said = {
            "name": self.name,
            "kind": self.kind,
            "after": list(self.after),
            "queue": options.queue,
            "retry_limit": self.limit,
            "retryable": options.retryable,
        }
        told = {
            "priority": options.priority or None,
            "skippable": options.skippable or None,
            "description": options.description,
            "config": options.config,
            "each": self.each,
            "flow": None if self.inner is None else self.inner.title.name,
            "input": None if self.inner is None else self.inner.pinned(),
        }
        return said | {name: value for name, value in told.items() if value is not None}

    @property
    def may_be_skipped(self) -> bool:
        """Whether those that wait for it may find that it gave nothing."""
        return self.options.skippable or self.options.when is not None


def read_options(name: str, given: dict[str, Any]) -> StepOptions:
    """Read what a step says of itself."""
    spans = {name: span(given[name]) for name in ("timeout", "lease") if given.get(name) is not None}
    known = {name: value for name, value in given.items() if value is not None}
    for option in known.keys() - _OPTIONS:
        raise BadTask(
            f"step {name} has no option {option}", where=option, next=did_you_mean(option, [*_OPTIONS, *_SHAPE])
        )
    try:
        return StepOptions(**{**known, **spans})
    except BadTask as error:
        raise BadTask(f"step {name}: {error.what}", where=error.where, next=error.next) from None


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Name the one that was probably meant, else all."""
    names = list(known)
    close = difflib.get_close_matches(given, names, n=1)
    return f"did you mean {close[0]}?" if close else f"there are: {', '.join(names)}"


def limit_of(name: str, options: StepOptions) -> int:
    limit = options.retry.limit if isinstance(options.retry, (RetryPolicy, StepRetry)) else options.retry
    if limit is not None and not is_count(limit):
        raise BadTask(
            f"step {name}: {limit!r} is no number of executions",
            where="retry",
            next="take at least 1, the first included",
        )
    return LIMIT if limit is None else max(1, limit)


def name_of(step: Step[Any, Any] | str) -> str:
    return step if isinstance(step, str) else step.name


def names_of(after: After) -> list[str]:
    return [name_of(after)] if isinstance(after, (str, Step)) else [name_of(each) for each in after]
