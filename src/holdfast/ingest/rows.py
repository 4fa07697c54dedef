"""A source of rows that can be iterated over more than once: a list, or an object whose iterator reads them again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from holdfast.errors import BadDefinition
from holdfast.ingest.settings import check_page_size
from holdfast.ingest.source import Page, Part, Window

Field = str | Callable[[Any], Any]


class Rows:
    """Rows as a source: `Rows(orders, key="id", updated_at="changed_at")`.

    A field is the name of a mapping's key, or a function of the row. Without `updated_at` each run reads all rows.
    Pages go by key unless `paging="offset"`, the document's walk by 0, 30, 60, which skips rows if the rows change
    meanwhile. With `axis`, a whole number of each row, partitions are planned by counting ranges of it.
    """

    def __init__(
        self,
        rows: Iterable[Any],
        key: Field,
        *,
        updated_at: Field | None = None,
        deleted: Field | None = None,
        axis: Field | None = None,
        paging: Literal["key", "offset"] = "key",
        page_size: int = 30,
        name: str | None = None,
    ) -> None:
        given: Any = rows
        check_page_size(page_size)
        if not isinstance(given, Iterable) or iter(given) is given:
            raise BadDefinition(
                f"rows must be iterable more than once, got {type(rows).__name__}",
                where="rows",
                next="pass a list, or an object whose __iter__ reads the rows again",
            )
        self.rows = rows
        self.paging = paging
        self.page_size = page_size
        self.name = name
        self._key, self._updated_at, self._deleted, self._axis = key, updated_at, deleted, axis

    def key(self, record: Any) -> Any:
        """Return the key of a row."""
        found = _field(record, self._key)
        return found if found is None or isinstance(found, str) else str(found)

    def updated_at(self, record: Any) -> datetime | None:
        """Return when a row changed."""
        return None if self._updated_at is None else _field(record, self._updated_at)

    def deleted(self, record: Any) -> bool:
        """Return whether a row is a tombstone."""
        return self._deleted is not None and bool(_field(record, self._deleted))

    def page(self, window: Window, part: Part, cursor: Any, limit: int) -> Page:
        """Return the next rows by key, or by offset."""
        rows = self._sorted(window, part)
        begin = cursor or 0
        if self.paging == "key":
            begin = 0 if cursor is None else bisect_right(rows, cursor, key=lambda row: _order(self.key(row)))
        records = rows[begin : begin + limit]
        last = _order(self.key(records[-1])) if records else None
        return Page(records, last if self.paging == "key" else None, has_more=begin + limit < len(rows))

    def count(self, window: Window, part: Part) -> int:
        """Count distinct keys."""
        return len({_order(self.key(row)) for row in self._within(window, part)})

    def lookup(self, keys: list[str]) -> list[str]:
        """Return those of the keys that are still there."""
        wanted = set(keys)
        return [key for row in self.rows if (key := self.key(row)) in wanted and not self.deleted(row)]

    def span(self, window: Window) -> tuple[int, int] | None:
        """Return the range of the axis; None without rows."""
        values = [int(_field(row, self._axis)) for row in self._within(window, Part())]
        return (min(values), max(values) + 1) if values else None

    def partitions(self, window: Window, most: int, least: int) -> list[Part] | None:
        """Divide the rows by key; None if an axis is counted instead."""
        if self._axis is not None:
            return None
        keys = sorted({_order(self.key(row)) for row in self._within(window, Part())})
        if not keys:
            return []
        number = min(most, -(-len(keys) // least))
        places = [len(keys) * place // number for place in range(number)]
        edges = [keys[place] for place in places[1:]]
        sizes = [after - before for before, after in zip(places, [*places[1:], len(keys)], strict=True)]
        bounds = zip([None, *edges], [*edges, None], sizes, strict=True)
        return [Part(low, high, size) for low, high, size in bounds]

    def _sorted(self, window: Window, part: Part) -> list[Any]:
        return sorted(self._within(window, part), key=lambda row: _order(self.key(row)))

    def _within(self, window: Window, part: Part) -> list[Any]:
        place: Callable[[Any], Any] = (
            (lambda row: _order(self.key(row))) if self._axis is None else (lambda row: int(_field(row, self._axis)))
        )
        return [
            row
            for row in self.rows
            if self._is_in(window, row)
            and (part.low is None or place(row) >= part.low)
            and (part.high is None or place(row) < part.high)
        ]

    def _is_in(self, window: Window, row: Any) -> bool:
        at = self.updated_at(row)
        return at is None or ((window.since is None or at > window.since) and at <= window.until)


def _order(key: Any) -> str:
    return "" if key is None else str(key)


def _field(row: Any, field: Any) -> Any:
    if callable(field):
        return field(row)
    return row.get(field) if isinstance(row, Mapping) else getattr(row, field)
