"""A call of a SQL function as a value: sync and async differ only in who makes it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, LiteralString, TypeVar

Row = TypeVar("Row")

_TEXTS = (
    "name", "queue", "key", "unique_key", "tenant", "worker", "reason", "machine", "step_machine", "kind", "policy",
    "level", "message", "namespace", "version", "description", "law", "id", "state",
)  # fmt: skip
_NUMBERS = ("priority", "batch", "amount", "step_id", "lease_id", "tries", "retry_limit")
# What arguments of these names are, in all functions.
_EXPECTED: dict[str, tuple[str, type]] = {
    **dict.fromkeys(_TEXTS, ("text", str)),
    **dict.fromkeys(_NUMBERS, ("a whole number", int)),
    **dict.fromkeys(["lease", "timeout", "base", "longest", "longest_retry_after"], ("a timedelta", timedelta)),
    "due_at": ("a datetime", datetime),
}
_EXPECTED_ITEMS: dict[str, tuple[str, type]] = {
    **dict.fromkeys(["kinds", "tenants", "queues", "skip", "names", "awaited"], ("text", str)),
    **dict.fromkeys(["step_ids", "lease_ids"], ("whole numbers", int)),
}


@dataclass(frozen=True, slots=True)
class Call(Generic[Row]):
    """A call of a function of the kernel or of a face, not yet made; `row` is what each row of its answer becomes."""

    function: LiteralString
    row: type[Row]
    arguments: dict[str, Any]
    keeps_json: bool = False  # give JSON as the text that came, for a reader of its own
    then_within: timedelta | None = None  # the server gives the transaction up when no commit follows within it
    schema: LiteralString = "holdfast"  # or a face's own
    is_read: bool = False  # it changes nothing: an answer that is lost leaves nothing to wonder about

    def misfit(self) -> str | None:
        """Name an argument of the wrong type: the database knows no function that takes it, and says no more."""
        for name, given in self.arguments.items():
            if given is None:
                continue
            words, expected = _EXPECTED.get(name, ("", object))
            if not _is(given, expected):
                return f"{name} must be {words}, got {given!r}"
            if name in _EXPECTED_ITEMS and isinstance(given, list):
                words, expected = _EXPECTED_ITEMS[name]
                for item in given:
                    if not _is(item, expected):
                        return f"{name} must be a list of {words}, got {item!r} in it"
        return None


def _is(given: Any, expected: type) -> bool:
    return isinstance(given, expected) and (expected is not int or not isinstance(given, bool))
