"""Fetches pages of a partition: each call of the source is one attempt, each page is written with its settle."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

import psycopg
from psycopg import Connection

from holdfast.errors import RateLimited
from holdfast.failpoints import failpoint
from holdfast.ingest.context import IngestCtx, busy
from holdfast.ingest.records import BadPage, Stored, read_page, read_records
from holdfast.ingest.source import Page, Part, Reader, Window
from holdfast.kernel.arrays import Jsons, Texts
from holdfast.models import Continue, Fail

MOST_WALKS = 3
PUT = "select ingest.put_page(%s, %s, %b, %b, %b::timestamptz[], %b::boolean[])"
REJECT = "select ingest.quarantine_records(%s, %s, 'fetch', %s::text[], %s::text[], %s::text[])"


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a partition: the cursor of its step, as a value."""

    offset: int = 0  # records received in this walk
    read: int = 0  # distinct keys in this walk
    page: Any = None  # the source's own position
    round: int = 0  # how often the partition was read from its beginning
    counting: bool = False  # the walk is over, and the source is asked to count
    counted: int | None = None  # what the source counted before this walk; None: as it was planned
    moved: int = 0  # how often a person moved the offset: what was read before counts as new again

    @staticmethod
    def of(cursor: Any) -> Progress:
        """Read a step's cursor."""
        given = cursor or {}
        return Progress(**{each.name: given[each.name] for each in fields(Progress) if each.name in given})

    def cursor(self) -> dict[str, Any]:
        """Return it as a step's cursor."""
        fields = {"offset": self.offset, "read": self.read, "page": self.page, "round": self.round}
        rest = {"counting": self.counting or None, "counted": self.counted, "moved": self.moved or None}
        return fields | {name: value for name, value in rest.items() if value is not None}


class Fetcher:
    """Serves the partitions of a feed."""

    def __init__(self, reader: Reader, limit: str) -> None:
        self.reader = reader
        self.limit = limit

    def fetch(self, ctx: IngestCtx, item: dict[str, Any]) -> dict[str, int]:
        """Fetch one page, or count after the last one, and continue until the partition is read."""
        progress = Progress.of(ctx.cursor)
        window = Window(_read_time(item["updatedFrom"]), datetime.fromisoformat(item["updatedTo"]))
        part = Part(item["min"], item["max"], item["estimated"])
        try:
            if progress.counting:
                return self._counted(progress, part, int(self.reader.call("count", window, part)))
            position = progress.offset if self.reader.paging == "offset" else progress.page
            page = read_page(self.reader.call("page", window, part, position, item["limit"]))
        except RateLimited as error:
            raise busy(error, self.limit) from error
        except BadPage as error:
            raise Fail(error) from error
        failpoint("page_fetched")
        return self._stored(ctx, item, progress, page)

    def _stored(self, ctx: IngestCtx, item: dict[str, Any], progress: Progress, page: Page) -> dict[str, int]:
        """Write a page and decide how to continue, in the transaction that settles it."""
        try:
            records = read_records(self.reader, page.records)
        except BadPage as error:
            raise Fail(error) from error
        with ctx.transaction() as tx:
            fresh = put(tx, ctx, records) + len(records.rejected)
            failpoint("page_written")
            after = replace(
                progress,
                offset=progress.offset + len(page.records),
                read=progress.read + fresh,
                page=page.cursor,
            )
            if self._has_more(page, item["limit"], fresh):
                self._check_moved(progress, after, item)
                raise Continue(after.cursor())
            if self.reader.has("count"):
                raise Continue(replace(after, page=None, counting=True).cursor())
        return {"records": after.offset}

    def _has_more(self, page: Page, limit: int, fresh: int) -> bool:
        if not page.records or fresh == 0:
            return False
        return len(page.records) >= limit if page.has_more is None else page.has_more

    def _check_moved(self, before: Progress, after: Progress, item: dict[str, Any]) -> None:
        """Raise Fail for a source that never ends: its cursor stays, or it has more records than it counted."""
        if self.reader.paging != "offset" and (after.page is None or after.page == before.page):
            raise Fail(f"the source has more pages, but its cursor stays at {after.page!r}")
        estimated = item["estimated"]
        if estimated is not None and after.offset > 2 * estimated + 10 * item["limit"]:
            raise Fail(f"the partition is larger than counted: {after.offset} records, {estimated} were counted")

    def _counted(self, progress: Progress, part: Part, count: int) -> dict[str, int]:
        """End the partition if no record was skipped; else read it again from its beginning, at most twice.

        Fewer keys than the source counts were skipped. By offset, a row that leaves also makes the next page jump over
        one, and both counts are then equal: there the count must be the same before and after the walk.
        """
        before = part.estimated if progress.counted is None else progress.counted
        has_changed = self.reader.paging == "offset" and before is not None and count != before
        if count <= progress.read and not has_changed:
            return {"records": progress.offset}
        if progress.round + 1 < MOST_WALKS:
            raise Continue(Progress(round=progress.round + 1, counted=count, moved=progress.moved).cursor())
        if count > progress.read:
            raise Fail(
                f"{count - progress.read} records are missing: the source counts {count}, "
                f"and {MOST_WALKS} walks read {progress.read}"
            )
        raise Fail(
            f"the source changed during each of {MOST_WALKS} walks by offset: {before} records, then {count}; "
            "rows may be skipped, so read it by key or token"
        )


def put(tx: Connection[Any], ctx: IngestCtx, records: Stored) -> int:
    """Store a page's records, quarantine the rejected, and return how many keys were new in this walk."""
    try:
        fresh = _put(tx, ctx, records)
    except psycopg.DataError:
        tx.rollback()  # nothing is in it yet
        _reject_unreadable(tx, records)
        fresh = _put(tx, ctx, records)
    if records.rejected:
        keys, shown, reasons = (list(column) for column in zip(*records.rejected, strict=True))
        tx.execute(REJECT, [ctx.step_id, ctx.lease_id, keys, shown, reasons])
    return fresh


def _put(tx: Connection[Any], ctx: IngestCtx, records: Stored) -> int:
    times = records.updated_at if any(records.updated_at) else None
    deleted = records.deleted if any(records.deleted) else None
    values = [ctx.step_id, ctx.lease_id, Texts(records.keys), Jsons(records.payloads), times, deleted]
    row = tx.execute(PUT, values).fetchone()
    return 0 if row is None else int(row[0])


def _reject_unreadable(tx: Connection[Any], records: Stored) -> None:
    """Reject the records that only the database finds wrong: JSON that is valid, but that jsonb cannot hold."""
    for place in reversed(range(len(records.keys))):
        try:
            tx.execute("select %s::text::jsonb", [records.payloads[place]])
        except psycopg.DataError as error:
            tx.rollback()
            records.reject(place, f"PostgreSQL cannot store it: {error.diag.message_primary}")


def _read_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
