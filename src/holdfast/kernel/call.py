"""A call of a SQL function as a value: sync and async differ only in who makes it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, LiteralString, TypeVar

Row = TypeVar("Row")


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
