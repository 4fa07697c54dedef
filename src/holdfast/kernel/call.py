"""A call of a SQL function as a value, the executor that runs it, and checks of its arguments."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, LiteralString, Protocol, TypeVar

from psycopg import Connection

from holdfast.connections.caller.types import AsyncDriver, CallerConnection
from holdfast.durations import Duration, duration
from holdfast.errors import BadInput, WaitTimedOut

Row = TypeVar("Row")
LONGEST_NAME = 200  # characters of a queue, worker, tenant or handler
LONGEST_KEY = 400
ALL = "*"  # no name: it stands for all tenants, or all members of a family
_EXAMPLES = {"key": "order:42", "unique_key": "sync:42", "tenant": "acme"}
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
FIRST_LOOK = 0.01  # seconds until the second check; the pauses grow
LAST_LOOK = 0.5

_TEXTS = (
    "name", "queue", "key", "unique_key", "tenant", "worker", "reason", "machine", "step_machine", "kind", "policy",
    "level", "message", "namespace", "version", "description", "law", "id", "state",
)  # fmt: skip
_NUMBERS = ("priority", "batch", "amount", "step_id", "lease_id", "tries", "retry_limit")
# The types of arguments by name, the same in all functions.
_EXPECTED: dict[str, tuple[str, type]] = {
    **dict.fromkeys(_TEXTS, ("text", str)),
    **dict.fromkeys(_NUMBERS, ("a whole number", int)),
    **dict.fromkeys(
        ["lease", "timeout", "base", "longest", "longest_retry_after", "key_for"], ("a timedelta", timedelta)
    ),
    "due_at": ("a datetime", datetime),
}
_EXPECTED_ITEMS: dict[str, tuple[str, type]] = {
    **dict.fromkeys(["kinds", "tenants", "queues", "skip", "names", "awaited"], ("text", str)),
    **dict.fromkeys(["step_ids", "lease_ids"], ("whole numbers", int)),
}


@dataclass(frozen=True, slots=True)
class Call(Generic[Row]):
    """A call of a SQL function of the kernel or of a face, not yet made; `row` is the type of each row it returns."""

    function: LiteralString
    row: type[Row]
    arguments: dict[str, Any]
    keeps_json: bool = False  # return JSON as text, for callers that parse it themselves
    then_within: timedelta | None = None  # the server rolls back if no commit follows within this time
    schema: LiteralString = "holdfast"  # or a face's own
    is_read: bool = False  # it changes nothing, so a lost answer does no harm
    is_delayed: bool = False  # due_at is a timedelta, which the database adds to its clock

    def misfit(self) -> tuple[str, str] | None:
        """Return the first argument of a wrong type, with a message; the database only reports a missing function."""
        for name, given in self.arguments.items():
            if given is None or (name == "due_at" and self.is_delayed):
                continue
            words, expected = _EXPECTED.get(name, ("", object))
            if not _is(given, expected):
                return name, f"{name} must be {words}, got {given!r}"
            if name in _EXPECTED_ITEMS and isinstance(given, list):
                words, expected = _EXPECTED_ITEMS[name]
                for item in given:
                    if not _is(item, expected):
                        return name, f"{name} must be a list of {words}, got {item!r} in it"
        return None


def check_moments(**moments: Any) -> None:
    """Raise BadInput for a time that is not a datetime with a time zone; None was not given."""
    for name, moment in moments.items():
        if moment is not None and (not isinstance(moment, datetime) or moment.utcoffset() is None):
            raise BadInput(
                f"{name} must be a datetime with a time zone, got {moment!r:.60}", where=name, next="add tzinfo=UTC"
            )


class Executor(Protocol):
    """Runs calls on connections of its own, or on one that the caller passes."""

    def make(self, call: Call[Any], conn: CallerConnection | None = None) -> list[Any]:
        """Make a call."""

    async def amake(self, call: Call[Any], conn: CallerConnection | None = None) -> list[Any]:
        """Make a call."""

    def connection(self, conn: CallerConnection | None = None) -> AbstractContextManager[Connection[Any]]:
        """Lend a connection for several calls."""

    def aconnection(self, conn: CallerConnection | None = None) -> AbstractAsyncContextManager[AsyncDriver]:
        """Lend an async connection for several calls."""


def pauses(timeout: Duration | None, what: str) -> Iterator[float]:
    """Yield one pause after the other; raise WaitTimedOut when the time is up."""
    limit = None if timeout is None else duration(timeout, "timeout")
    until = None if limit is None else time.monotonic() + limit.total_seconds()
    pause = FIRST_LOOK
    while True:
        yield pause if until is None else min(pause, max(0.0, until - time.monotonic()))
        if until is not None and time.monotonic() >= until:
            number = what.rpartition(" ")[2]
            raise WaitTimedOut(
                f"{what} did not end within {limit}",
                where=number,
                next=f"it continues, follow it with: holdfast runs watch {number}",
            )
        pause = min(LAST_LOOK, pause * 1.5)


def problem(what: str, given: Any, longest: int = LONGEST_NAME) -> str | None:
    """Return why a value is not a valid name, or None."""
    if not isinstance(given, str):
        return f"{what} must be text, got {given!r}"
    if given == ALL:
        return f"{what} must be one name, got {given}, which stands for all"
    if not 1 <= len(given) <= longest or _CONTROL.search(given):
        shown = repr(given if len(given) <= 50 else given[:50] + "…")
        return f"{what} must have 1 to {longest} characters and no control characters, got {len(given)}: {shown}"
    return None


def check_names(names: Iterable[tuple[str, Any]], longest: int = LONGEST_NAME) -> None:
    """Raise BadInput unless the value is a valid name or None, which means the database's default."""
    for what, given in names:
        reason = None if given is None else problem(what, given, longest)
        if reason is not None:
            raise BadInput(
                reason,
                where=what,
                next=f"use text such as {_EXAMPLES.get(what, 'mail')}, of {longest} characters or fewer",
            )


def check_tenant(given: Any) -> None:
    """Raise BadInput unless the value names one tenant."""
    check_names([("tenant", "" if given is None else given)])


def check_priority(given: Any) -> None:
    """Raise BadInput unless the value is a priority."""
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= 9:
        raise BadInput(
            f"priority must be a whole number from 0 to 9, got {given!r}",
            where="priority",
            next="use 9 for the most urgent",
        )


def check_due(given: Any) -> None:
    """Raise BadInput unless the value is a datetime with a time zone; without one the database would assume its own."""
    if given is None or (isinstance(given, datetime) and given.utcoffset() is not None):
        return
    raise BadInput(
        f"due_at must be a datetime with a time zone, got {given!r}",
        where="due_at",
        next='use datetime.now(UTC) + timedelta(minutes=10), or delay="10m"',
    )


def check_delay(delay: timedelta | None, due_at: datetime | None) -> None:
    """Raise BadInput if both delay and due_at are set."""
    if delay is not None and due_at is not None:
        raise BadInput(f"delay and due_at are both set, to {delay} and {due_at}", where="delay", next="leave one out")


def _is(given: Any, expected: type) -> bool:
    return isinstance(given, expected) and (expected is not int or not isinstance(given, bool))
