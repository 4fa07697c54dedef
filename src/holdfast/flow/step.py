"""The parts of a flow's definition: its title, its steps, and the options of a step."""

from __future__ import annotations

import functools
import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from holdfast.durations import Duration
from holdfast.errors import BadDefinition
from holdfast.flow import batches
from holdfast.flow.backoff import StepRetry
from holdfast.handlers.batch import Batching, read_batching
from holdfast.handlers.limits import KindLimits, read_limits
from holdfast.handlers.registry import RETRIES, Handler, RetryPolicy, check_name, read_duration
from holdfast.spelling import did_you_mean

if TYPE_CHECKING:
    from holdfast.flow.define import Flow

R_co = TypeVar("R_co", covariant=True)
Function_co = TypeVar("Function_co", bound=Callable[..., Any], default=Callable[..., Any], covariant=True)
_SHAPE = ("name", "after", "each")  # the options that place a step in its flow
LIMIT = 3  # executions of a step, the first included
NAMESPACE = "default"
VERSION = "0.1.0"
_TAKEN = {"item": "it is the parameter for a mapped step's item", "config": "it is the parameter for a step's config"}
_NAME = re.compile(r"[^\W\d][\w-]*")  # letters of any script, as in Python's names


@dataclass(frozen=True, slots=True)
class Title:
    """The name, namespace and version of a flow."""

    name: str
    namespace: str = NAMESPACE
    version: str = VERSION
    description: str | None = None

    def __post_init__(self) -> None:
        for what, name in (("flow", self.name), ("namespace", self.namespace)):
            _check_form(name, f"a {what}")
            if not _NAME.fullmatch(name):
                raise BadDefinition(
                    f"{name!r} is not a valid name of a {what}",
                    where=what,
                    next="use letters, digits, _ and -, a letter first",
                )
            check_name(what, name)
        if not self.version or not self.version.isprintable():
            raise BadDefinition(
                f"flow {self.name}: version must be text, got {self.version!r}",
                where="version",
                next="use one such as 1.0.0",
            )
        check_name("version", self.version, of=f"flow {self.name}")

    def kind(self, step: str) -> str:
        """Return the kind of a step. It has no version: handlers of a flow also serve its older runs."""
        prefix = "" if self.namespace == NAMESPACE else f"{self.namespace}."
        return f"{prefix}{self.name}.{step}"


@dataclass(frozen=True, slots=True)
class StepOptions:
    """The options of a step besides its place in the flow."""

    retry: int | RetryPolicy | StepRetry | None = None
    retryable: bool = True
    skippable: bool = False
    queue: str = "default"
    when: Callable[..., Any] | None = None
    timeout: timedelta | None = None
    lease: timedelta | None = None
    cpu: bool = False
    priority: int = 0
    description: str | None = None
    config: Mapping[str, Any] | None = None
    limits: Sequence[str] | None = None
    weight: float | str | None = None
    call_weight: float | None = None
    batch: int | None = None
    by: str | None = None
    batch_wait: Duration | None = None

    def __post_init__(self) -> None:
        if not is_count(self.priority, most=9):
            raise BadDefinition(
                f"priority must be a whole number from 0 to 9, got {self.priority!r}",
                where="priority",
                next="use 9 for the most urgent",
            )
        queue: Any = self.queue
        if not isinstance(queue, str) or not queue:
            raise BadDefinition(f"queue must be a name, got {queue!r}", where="queue", next='use queue="mail"')
        _check_config(self.config)
        read_limits(self.limits, self.weight, self.call_weight)
        read_batching(self.batch, self.by, self.batch_wait, lease=self.lease)

    @property
    def batching(self) -> Batching | None:
        """How its steps share calls; None for one call per step."""
        return read_batching(self.batch, self.by, self.batch_wait, lease=self.lease)

    @property
    def limited(self) -> KindLimits:
        """Its limits, with the fields of the context still to be filled in."""
        return read_limits(self.limits, self.weight, self.call_weight)


_OPTIONS = tuple(each.name for each in fields(StepOptions))


class Step(Generic[R_co, Function_co]):
    """A step of a flow. Calling it runs its function directly.

    A `Step[R]` has the result `R`: what its function returns, or a list of that if it runs once per item. The second
    parameter is the function as it was written; an annotation may leave it out.
    """

    def __init__(self, name: str, handler: Handler, function: Function_co) -> None:
        self.name = name
        self.handler = handler
        self._function = function
        functools.update_wrapper(self, function)

    if TYPE_CHECKING:
        __call__: (
            Function_co  # an attribute, because it is the function itself, with its own parameters and return type
        )
    else:

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            """Run its function directly, without the database."""
            return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<step {self.handler.kind}>"


After = Step[Any] | str | Sequence[Step[Any] | str]


@dataclass(frozen=True, slots=True)
class Node:
    """A step in the graph of its flow."""

    name: str
    after: tuple[str, ...]
    options: StepOptions
    limit: int
    kind: str  # of the planned row
    each: str | None = None
    inner: Flow | None = None

    def planned(self) -> dict[str, Any]:
        """Return the step as an entry of a plan."""
        options = self.options
        is_map = self.each is not None  # its limits are those of its items
        entry = {
            "name": self.name,
            "kind": self.kind,
            "after": list(self.after),
            "queue": options.queue,
            "retry_limit": self.limit,
            "retryable": options.retryable,
        }
        optional = {
            "priority": options.priority or None,
            "skippable": options.skippable or None,
            "description": options.description,
            "config": options.config,
            "each": self.each,
            "flow": None if self.inner is None else self.inner.title.name,
            "input": None if self.inner is None else self.inner.pinned(),
            "limits": None if is_map else list(options.limits or ()) or None,
            "weight": None if is_map else options.weight,
            "batch_key": None if is_map else batches.template(options),
        }
        return entry | {name: value for name, value in optional.items() if value is not None}

    @property
    def may_be_skipped(self) -> bool:
        """Return whether steps that wait for it may receive None instead of its result."""
        return self.options.skippable or self.options.when is not None


def read_options(name: str, options: dict[str, Any]) -> StepOptions:
    """Check the options of a step."""
    known = {name: value for name, value in options.items() if value is not None}
    for option in known.keys() - _OPTIONS:
        raise BadDefinition(
            f"step {name} has no option {option}", where=option, next=did_you_mean(option, [*_OPTIONS, *_SHAPE])
        )
    if known.get("retry") is False:
        del known["retry"]
        known["retryable"] = False
    try:
        durations = {option: read_duration(option, known.get(option)) for option in ("timeout", "lease")}
        return StepOptions(**{**known, **durations})
    except BadDefinition as error:
        raise BadDefinition(f"step {name}: {error.what}", where=error.where, next=error.next) from None


def limit_of(name: str, options: StepOptions) -> int:
    limit = options.retry.limit if isinstance(options.retry, (RetryPolicy, StepRetry)) else options.retry
    if limit is not None and not is_count(limit):
        raise BadDefinition(
            f"step {name}: retry must be a number of executions, False or a policy, got {limit!r}",
            where="retry",
            next=RETRIES,
        )
    return LIMIT if limit is None else max(1, limit)


def name_of(step: Step[Any] | str) -> str:
    given: Any = step
    if not isinstance(given, (str, Step)):
        raise BadDefinition(
            f"after and each must be steps or their names, got {given!r}",
            where="after",
            next="use after=[reserve, check]",
        )
    return given if isinstance(given, str) else given.name


def names_of(after: After) -> list[str]:
    given: Any = after
    return [name_of(each) for each in given] if isinstance(given, (list, tuple, set)) else [name_of(given)]


def is_count(value: Any, *, most: int = 2**31 - 1) -> bool:
    """Return whether it is a whole number from 0 to `most`."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def check_step_name(flow: str, name: str) -> None:
    """Reject a name that no parameter can have: steps receive results by the names of their parents."""
    _check_form(name, f"a step of flow {flow}")
    if not name.isidentifier() or iskeyword(name):
        raise BadDefinition(
            f"{name!r} cannot name a step of flow {flow}", where=name, next="use a name that a parameter could have"
        )
    if name in _TAKEN or name.startswith("holdfast_"):
        meaning = _TAKEN.get(name, "names with this prefix are reserved")
        raise BadDefinition(
            f"a step of flow {flow} cannot be called {name}: {meaning}", where=name, next="use another name"
        )


def _check_form(name: str, what: str) -> None:
    """Reject a name that is not in NFKC, the form in which Python reads the names of parameters."""
    plain = unicodedata.normalize("NFKC", name)
    if name != plain:
        raise BadDefinition(
            f"{name!r} cannot name {what}: its letters are not in the form that Python reads",
            where=name,
            next=f"write {plain!r}",
        )


def _check_config(config: Any) -> None:
    if config is None:
        return
    if not isinstance(config, Mapping):
        raise BadDefinition(f"config must be a dict, got a {type(config).__name__}", where="config", next="use a dict")
    try:
        json.dumps(config, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadDefinition(
            f"config must be JSON, because it is stored with the definition: {error}",
            where="config",
            next="use text, numbers, lists and dicts with names as text",
        ) from None
