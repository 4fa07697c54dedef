"""The handlers of an app by kind, with their options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import chain
from typing import Any, Protocol

from holdfast.durations import Duration, duration
from holdfast.errors import BadDefinition
from holdfast.handlers.batch import Batching
from holdfast.handlers.context import Ctx
from holdfast.handlers.inputs import Completes, Want
from holdfast.handlers.limits import NONE, KindLimits
from holdfast.handlers.signature import Signature
from holdfast.kernel import calls
from holdfast.kernel.call import Call, problem
from holdfast.models import Json, Retry
from holdfast.spelling import checks_options

LONGEST_LEASE = timedelta(days=365)
MOST_TRIES = 2**31 - 1
MOST_GROWTH = 1000
_EXAMPLES = {"version": "1.0.0"}
RETRIES = "use 5 for the first execution and four retries, False for none, or RetryPolicy(limit=5, base=10)"


class RetryLaw(Protocol):
    """How a face retries failures of a kind."""

    def definition(self, policy: str) -> Call[None]:
        """Return the call that stores it under a name."""

    def without_waits(self) -> RetryLaw:
        """Return the same policy without delays, for tests."""


@dataclass(frozen=True, slots=True, init=False)
class RetryPolicy:
    """How failures are retried: at most `limit` executions, with a delay of `base`, then `growth` times as long, …

    No delay is longer than `longest`, and each varies by the share `jitter`. `waits` lists the first delays instead.
    """

    limit: int
    base: timedelta
    growth: float
    longest: timedelta
    jitter: float
    waits: tuple[timedelta, ...]
    retryable: bool  # if False, the first failure is final, whatever the limit

    @checks_options(BadDefinition)
    def __init__(
        self,
        limit: int = 3,
        base: Duration = 1,
        growth: float = 2,
        longest: Duration = "1h",
        jitter: float = 0.1,
        *,
        waits: Sequence[Duration] = (),
        retryable: bool = True,
    ) -> None:
        fields = {
            "limit": limit,
            "base": _duration("base", base),
            "growth": growth,
            "longest": _duration("longest", longest),
            "jitter": jitter,
            "waits": _durations("waits", waits),
            "retryable": retryable,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)  # frozen after this
        _check_policy(self)

    def definition(self, policy: str) -> Call[None]:
        """Return the call that stores it under a name."""
        return calls.define_policy(
            policy,
            tries=self.limit,
            waits=self.waits,
            base=self.base,
            growth=self.growth,
            longest=self.longest,
            jitter=self.jitter,
            retryable=self.retryable,
        )

    def without_waits(self) -> RetryPolicy:
        """Return the same policy without delays."""
        return replace(self, base=timedelta(0), waits=(), jitter=0)


@dataclass(frozen=True, slots=True)
class Handler:
    """A function that serves a kind. Without a policy its exceptions are final, but a lost worker is not.

    What it needs besides the step's input is read with `completes`, once for all steps of a claim. If a kind has
    handlers of several versions, the version in the answer decides.
    """

    kind: str
    function: Callable[..., Any]
    signature: Signature
    is_async: bool
    uses_cpu: bool
    queue: str
    retry: RetryLaw | None
    lease: timedelta | None
    timeout: timedelta | None
    wants: tuple[Want, ...] = ()
    completes: Completes | None = None
    version: str | None = None
    face: str = "work"
    constants: Json | None = None  # arguments that are the same for each step, as an object
    limited: KindLimits = NONE
    call_weight: Callable[[], float] | None = None  # instead of that of `limited`, asked for when a worker begins
    context: type[Ctx] = Ctx  # a face may extend it
    batching: Batching | None = None  # one call serves many steps; its signature is then a BatchSignature
    interrupted: Retry | None = None  # the outcome if its worker stops while it runs; None: the step is released
    is_releasable: bool = True  # else a worker claims its steps only for slots that are free now

    def definitions(self) -> Iterator[Call[None]]:
        """Return the call that registers the defaults of this kind."""
        policy = None
        if self.retry is not None:
            policy = f"{self.face}:{self.kind}"
            yield self.retry.definition(policy)
        yield calls.define_kind(
            self.kind,
            queue=self.queue,
            policy=policy,
            lease=self.lease,
            timeout=self.timeout,
            limits=self.limited.limits,
            weight=self.limited.weight,
            call_weight=self.limited.call_weight if self.call_weight is None else self.call_weight(),
            batch=1 if self.batching is None else self.batching.most,
            batch_by=None if self.batching is None else self.batching.by,
        )


class Registry:
    """Handlers by kind, the version that was added last first, and other definitions that workers send."""

    def __init__(self) -> None:
        self._handlers: dict[str, dict[str | None, Handler]] = {}
        self._definitions: list[Callable[[], Call[None]]] = []

    def add(self, handler: Handler) -> None:
        """Register a handler; a kind has one per version."""
        _check(handler)
        versions = self._handlers.setdefault(handler.kind, {})
        other = versions.pop(handler.version, None)
        if other is not None and other.function is not handler.function:
            versions[handler.version] = other
            raise BadDefinition(
                f"two handlers would serve {handler.kind}: {_place(other)} and {_place(handler)}",
                where=handler.kind,
                next="give one of them another name, as in @hf.task(name=…)",
            )
        versions[handler.version] = handler

    def changed(self, change: Callable[[Handler], Handler]) -> Registry:
        """Return a registry of the same handlers, each with some fields changed."""
        registry = Registry()
        registry._definitions = list(self._definitions)
        for versions in self._handlers.values():
            for handler in versions.values():
                registry.add(change(handler))
        return registry

    def add_definition(self, definition: Callable[[], Call[None]]) -> None:
        """Add a definition that each worker sends when it connects."""
        self._definitions.append(definition)

    def definitions(self) -> Iterator[Call[None]]:
        """Return all definitions that a worker sends when it connects."""
        yield from chain.from_iterable(handler.definitions() for handler in self)
        yield from (say() for say in self._definitions)

    def find(self, kind: str) -> Handler | None:
        """Return the handler of a kind."""
        versions = self.versions(kind)
        return versions[-1] if versions else None

    def versions(self, kind: str) -> tuple[Handler, ...]:
        """Return all handlers of a kind, in the order they were added."""
        return tuple(self._handlers.get(kind, {}).values())

    def kinds(self) -> list[str]:
        """List the kinds that are served."""
        return sorted(self._handlers)

    def __iter__(self) -> Iterator[Handler]:
        return (versions[-1] for versions in map(self.versions, list(self._handlers)))


def _check(handler: Handler) -> None:
    name = handler.kind
    if not name or not name.isprintable():
        raise BadDefinition(
            f"{name!r} is not a valid name of a task", where="name", next="use letters, digits, dots and dashes"
        )
    check_name("name", name)
    check_name("queue", handler.queue, of=name)
    if handler.uses_cpu and handler.is_async:
        raise BadDefinition(
            f"{name}: an async handler cannot run in a process",
            where="cpu",
            next="make it a plain def, or remove cpu=True",
        )
    if handler.uses_cpu and "<locals>" in handler.function.__qualname__:
        raise BadDefinition(
            f"{name}: a cpu=True handler must be importable by its name",
            where="cpu",
            next="define it at the top of a module",
        )
    for option, given in (("lease", handler.lease), ("timeout", handler.timeout)):
        if given is not None and given <= timedelta(0):
            raise BadDefinition(f"{name}: {option} must be longer than 0", where=option, next='use "5m"')
        if given is not None and given > LONGEST_LEASE:
            raise BadDefinition(
                f"{name}: a {option} must be at most {LONGEST_LEASE.days} days, got {given}",
                where=option,
                next="use minutes",
            )


def check_name(what: str, name: Any, *, of: str | None = None) -> None:
    """Raise for a name that the database would reject each time a worker connects."""
    if reason := problem(what, name):
        raise BadDefinition(
            reason if of is None else f"{of}: {reason}",
            where=what,
            next=f"use a name such as {_EXAMPLES.get(what, 'mail')}",
        )


def read_retry(given: Any) -> RetryPolicy | None:
    """Parse `retry`: a total number of executions, a policy, or None or False for no retry."""
    if given is None or given is False or isinstance(given, RetryPolicy):
        return given or None
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= MOST_TRIES:
        raise BadDefinition(
            f"retry must be a number of executions, False or a RetryPolicy, got {given!r}", where="retry", next=RETRIES
        )
    return RetryPolicy(given) if given > 0 else None


def read_duration(option: str, given: Duration | None) -> timedelta | None:
    """Parse the lease or the timeout of a handler."""
    return None if given is None else duration(given, option, error=BadDefinition)


def _duration(field: str, given: Duration) -> timedelta:
    return duration(given, field, error=BadDefinition)


def _durations(field: str, given: Any) -> tuple[timedelta, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise BadDefinition(f"{field} must be a list of durations, got {given!r}", where=field, next='use ["5s", "1m"]')
    return tuple(_duration(f"{field}[{place}]", each) for place, each in enumerate(given))


def _check_policy(policy: RetryPolicy) -> None:
    """Raise here for values that the database would reject each time a worker connects."""
    limit: Any = policy.limit
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_TRIES:
        raise BadDefinition(
            f"limit must be a whole number of executions from 1 to {MOST_TRIES}, got {limit!r}",
            where="limit",
            next="use 3 for the first execution and two retries",
        )
    for field, least, most, example in (("jitter", 0, 1, 0.1), ("growth", 1, MOST_GROWTH, 2)):
        given: Any = getattr(policy, field)
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not least <= given <= most:
            raise BadDefinition(
                f"{field} must be a number from {least} to {most}, got {given!r}", where=field, next=f"use {example}"
            )


def _place(handler: Handler) -> str:
    return f"{handler.function.__module__}.{handler.function.__qualname__}"
