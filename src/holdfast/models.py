"""Rows and outcomes as frozen dataclasses; the frequent ones are named tuples, which are faster to create.

Four outcomes are exceptions too, so that a handler may raise what it may return. They are not frozen, because raising
an exception writes its traceback into it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple
from uuid import UUID

from holdfast.durations import Duration, wait

Event = Literal[
    "queued", "claimed", "started", "succeeded", "retried", "failed", "snoozed", "released", "continued", "expired",
    "reopened", "resolved", "cancelled", "rolled_back", "by_hand", "created",
    "all_succeeded", "some_failed", "none_succeeded", "blocked", "stopped",
]  # fmt: skip
ActorKind = Literal["worker", "api", "user", "scheduler", "system"]
Level = Literal["debug", "info", "warn", "error"]
RunOutcome = Literal[
    "succeeded", "failed", "cancelled", "partial", "undone"
]  # partial: some steps of the run succeeded, others failed
Law = Literal["exponential", "power"]  # of delays beyond the policy's list


@dataclass(frozen=True, slots=True)
class Unreadable:
    """JSON that the database can store and Python cannot parse: nested too deep, or a number too long."""

    reason: str


class Json(str):
    """JSON as text, stored unchanged."""

    __slots__ = ()


class ClaimedStep(NamedTuple):
    """A step that a worker holds under a lease. An Unreadable input fails this step only, not its batch."""

    step_id: int
    run_id: UUID | None
    kind: str
    input: Any
    attempt: int
    lease_id: int
    lease_until: datetime
    cursor: Any
    batch_key: str | None = None
    call: int | None = None  # steps of a claim with the same number are one call of their handler
    tenant: str | None = None  # null unless the step may share a call
    is_alone: bool | None = None  # its call lost its worker or ran out of time, so it shares none


class CompletedInput(NamedTuple):
    """A step's input, the context its handler asked for, both as JSON text, and the definition's version."""

    step_id: int
    version: str | None
    input: Any


class SettledStep(NamedTuple):
    """A move that the database accepted: the event, and the step's new state."""

    step_id: int
    event: Event
    state: str


@dataclass(frozen=True, slots=True)
class LostLease:
    """A lost lease, and the state of its step; None when the step is gone or not visible."""

    lease_id: int
    state: str | None


@dataclass(frozen=True, slots=True)
class RetryWait:
    """In how long a step is due again."""

    step_id: int
    wait: timedelta


@dataclass(frozen=True, slots=True)
class StepResult:
    """The state of a step; the outcome is None until it ends."""

    step_id: int
    state: str
    outcome: RunOutcome | None
    result: Any
    error: Any


@dataclass(frozen=True, slots=True)
class RunResult:
    """The state of a run; the outcome is None until it ends."""

    run_id: UUID
    state: str
    outcome: RunOutcome | None


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a task or of a run; `outcome` is None until it ends.

    For a run, `step`, `attempts` and `error` describe its first step that failed or was cancelled, and the counts
    are of its steps; a task has no counts. `started_at` of a task is when its latest attempt was claimed.
    """

    id: int | UUID | str
    name: str
    state: str
    phase: str | None
    outcome: RunOutcome | None
    step: str | None
    attempts: int | None
    error: Any
    reason: str | None  # of the last move, if a person gave one
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    total: int | None
    succeeded: int | None
    failed: int | None
    cancelled: int | None


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """A move or a note of a task, of a run or of one of its steps, as handles list them.

    `event` is the event of a move or the level of a note, `message` the reason of a move or the text of a note,
    `payload` the error of a move or the fields of a note. `step` is the step's name in its run.
    """

    id: int
    at: datetime
    kind: Literal["move", "note"]
    step_id: int | None
    step: str | None
    event: str
    from_state: str | None
    to_state: str | None
    actor_kind: ActorKind | None
    actor: str | None
    message: str | None
    payload: Any
    attempt: int | None


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The counts of one round of upkeep."""

    rescued: int
    moved: int
    partitions: int


@dataclass(frozen=True, slots=True)
class MeasuredUpkeep:
    """The counts of one round of upkeep, with the abandoned steps by kind and the due steps by queue."""

    rescued: int
    moved: int
    partitions: int
    exhausted: dict[str, int]
    backlog: dict[str, int]


@dataclass(frozen=True, slots=True)
class FiredSchedules:
    """How many schedules a worker looked at, after how long to look again, and whose ticks it is to plan."""

    looked_at: int
    waits: timedelta | None
    plans: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class BackfilledTick:
    """A past tick that was fired by hand, and what it started."""

    at: datetime
    ids: list[str]


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold."""

    invariant: str
    subject: str
    detail: str


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One move, as it was journaled."""

    id: int
    at: datetime
    tenant: str
    machine: str
    from_state: str
    event: Event
    to_state: str
    actor_kind: ActorKind
    actor: str
    step_id: int | None
    run_id: UUID | None
    attempt: int | None
    lease_id: int | None
    reason: str | None
    error: Any
    login: str | None = None  # the login that named the actor, if it acted for somebody


def error_text(error: Any) -> str:
    """Return an error's message or, without one, the whole error as JSON, as holdfast.error_text does."""
    match error:
        case {"message": message} if message is not None:
            return str(message)
        case None | str():
            return error or ""
        case _:
            return json.dumps(error, ensure_ascii=False)


def error_line(error: Any) -> str:
    """Format an error as its type and message."""
    kind = error.get("type") if isinstance(error, dict) else None
    return f"{kind or 'error'}: {error_text(error)}"


DEFAULT_LEASE = timedelta(seconds=300)  # used when neither worker, kind nor claim sets one


class Done(NamedTuple):
    result: Any = None


@dataclass(eq=False)  # compared by identity, as other exceptions are, so they can be hashed
class Retry(Exception):
    """Retry the step, after `after` or else by its policy; this counts as a failure.

    `policy` names another retry policy, and `ordinal` says which failure of its sort this is: together they set the
    delay. `is_charged=False` uses no try. `of_call`: the whole call failed, so that a breaker counts it once.
    """

    error: Any = None
    after: Duration | None = None
    pause: str | None = None  # a limit that is closed for all workers until then
    policy: str | None = field(default=None, kw_only=True)
    ordinal: int | None = field(default=None, kw_only=True)
    is_charged: bool = field(default=True, kw_only=True)
    of_call: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.after is not None:
            wait(self.after, "after")

    def __str__(self) -> str:
        when = "by the policy" if self.after is None else f"after {_length(self.after)}"
        return _said(f"retry {when}", self.error)


@dataclass(eq=False)
class Fail(Exception):
    """Fail for good, because a retry would not help."""

    error: Any = None

    def __str__(self) -> str:
        return _said("fail for good", self.error)


@dataclass(eq=False)
class Snooze(Exception):
    """Run the step again later; this does not count as a failure.

    `call_key`: from now on a step of a batch handler shares calls only with steps that were given the same key.
    """

    after: Duration
    pause: str | None = None  # a limit that is closed for all workers until then
    call_key: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        wait(self.after, "after")

    def __str__(self) -> str:
        return f"snooze for {_length(self.after)}"


@dataclass(eq=False)
class Continue(Exception):
    """One page is done; continue from `cursor`. `was` is the cursor before it, and the step moves only from there."""

    cursor: Any
    was: Any = None

    def __str__(self) -> str:
        return f"continue from {self.cursor!r}"


def _length(after: Any) -> str:
    """Format a duration as given; a bare number is seconds."""
    return f"{after:g} s" if isinstance(after, (int, float)) else str(after)


def _said(what: str, error: Any) -> str:
    if isinstance(error, BaseException):
        return f"{what}: {type(error).__name__}: {error}"
    return what if error is None else f"{what}: {error_text(error)}"


@dataclass(frozen=True, slots=True)
class Release:
    """The step was released, at a shutdown or because another worker has room. Untried, it gets its tokens back."""

    is_tried: bool = False


Outcome = Done | Retry | Fail | Snooze | Continue | Release


@dataclass(frozen=True, slots=True)
class Ending:
    """The outcome of one attempt, as hooks receive it; `took` is how long the handler ran, if it was called."""

    step_id: int
    kind: str
    attempt: int
    event: str
    state: str
    outcome: Outcome
    run_id: UUID | None = None
    took: timedelta | None = None
    trace_id: str | None = None
    face: str = "work"  # the face whose handler served it


class Settlement(NamedTuple):
    """The outcome of one claimed step, with its lease."""

    step_id: int
    lease_id: int
    outcome: Outcome
    alone: bool = False  # keep the step out of shared calls from now on
    raised_with: int | None = None  # the first step of a call that raised: a breaker counts it once
