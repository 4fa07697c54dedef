"""Consolidates a run: maps its records, prices them, and writes them to the target in batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import psycopg
from psycopg import Connection
from pydantic import ValidationError

from holdfast.errors import RateLimited, WrongState
from holdfast.failpoints import failpoint
from holdfast.handlers.signature import validation_text
from holdfast.ingest import calls
from holdfast.ingest.context import IngestCtx, busy
from holdfast.ingest.pricing import Pricing, Rule, read_rules
from holdfast.ingest.settings import Settings
from holdfast.ingest.source import Reader
from holdfast.ingest.target import Canonical
from holdfast.kernel import calls as kernel
from holdfast.kernel import db
from holdfast.kernel.arrays import Texts
from holdfast.models import Continue, Fail

LOOKUP = 1000  # keys that the source is asked for at once
REFUSED = (psycopg.DataError, psycopg.IntegrityError)
Mapped = list[tuple[str, dict[str, Any]]]  # the key of each record, and its values
MARK = "select ingest.mark_consolidated(%s, %s, %b, %b::text[])"
READ = json.JSONDecoder(parse_float=Decimal)  # one for all: json.loads would make one per record
REJECT = "select ingest.quarantine_records(%s, %s, %s, %s::text[], null, %s::text[])"


@dataclass(slots=True)
class Batch:
    """The records of a batch: mapped, deleted by the source, and rejected."""

    mapped: Mapped = field(default_factory=list)
    deleted: list[tuple[str, str]] = field(default_factory=list)  # key, key in the target
    rejected: list[tuple[str, str]] = field(default_factory=list)  # key, reason


class Consolidator:
    """Serves the consolidation of a feed."""

    def __init__(
        self,
        reader: Reader,
        target: Canonical,
        settings: Settings,
        map: Callable[[Any], Any] | None,  # noqa: A002 - the word is the user's
        price: Pricing | None,
    ) -> None:
        self.reader = reader
        self.target = target
        self.settings = settings
        self._map = map
        self._price = price

    def consolidate(self, ctx: IngestCtx, message: dict[str, Any]) -> dict[str, int]:  # noqa: ARG002 - for people
        """Cut the run's records into batches and wait for them; then check, delete what is absent, and end."""
        if ctx.cursor is None:
            with ctx.transaction() as tx:
                (batches,) = db.run(tx, calls.begin_consolidation(ctx.step_id, ctx.lease_id))
                failpoint("run_cut")
                raise Continue({"batches": batches})
        (verdict,) = ctx.make(calls.check_consolidated(ctx.step_id, ctx.lease_id))
        if verdict.problem is not None:
            raise Fail(verdict.problem)
        try:
            spared = list(self._spared(ctx)) if verdict.deletes and self.reader.has("lookup") else []
        except RateLimited as error:
            raise busy(error, f"source:{self.reader.name}") from error
        with ctx.transaction() as tx:
            try:
                absent = db.run(tx, calls.delete_absent(ctx.step_id, ctx.lease_id, spared)) if verdict.deletes else []
            except WrongState as error:
                raise Fail(error) from error
            for keys in batched(absent, 10_000):
                self.target.delete(tx, keys)
            failpoint("run_ending")
        return {"deleted": len(absent)}

    def _spared(self, ctx: IngestCtx) -> Iterator[str]:
        """Yield the keys that the run did not see although the source still has them."""
        after: str | None = None
        while keys := ctx.make(calls.absent_keys(ctx.step_id, ctx.lease_id, LOOKUP, after)):
            yield from self.reader.call("lookup", keys)
            after = keys[-1]

    def consolidate_batch(self, ctx: IngestCtx, batch: dict[str, Any]) -> dict[str, int]:  # noqa: ARG002 - SQL reads it
        """Map and price the records of a range outside of any transaction, then write and mark them in one."""
        rows: list[calls.RawRecord] = ctx.make(calls.batch_rows(ctx.step_id, ctx.lease_id))
        made = self.mapped(rows)
        with ctx.transaction() as tx:
            written = self._write(tx, made)
            self._mark(tx, ctx, made, written)
            failpoint("batch_written")
            counts = {"rows": len(written), "deleted": len(made.deleted), "rejected": len(made.rejected)}
            note = kernel.note(ctx.step_id, ctx.lease_id, "info", "consolidated", payload=counts, key=f"{ctx.attempt}")
            db.run(tx, note)
        return counts

    def mapped(self, rows: list[calls.RawRecord]) -> Batch:
        """Map each record, and price it by the rules that the run froze."""
        batch = Batch()
        rules = read_rules(rows[0].pricing) if rows and self._price is not None else []
        for row in rows:
            if row.deleted:
                batch.deleted.append((row.key, row.target_key or row.key))
                continue
            try:
                batch.mapped.append((row.key, self._values(row, rules)))
            except ValidationError as error:
                batch.rejected.append((row.key, validation_text(error)))
            except Exception as error:  # noqa: BLE001 - a map may raise anything; the record is quarantined
                batch.rejected.append((row.key, f"{type(error).__name__}: {error}"))
        return batch

    def _values(self, row: calls.RawRecord, rules: list[Rule]) -> dict[str, Any]:
        payload = READ.decode(row.payload)
        values = self.target.read(payload if self._map is None else self._map(payload))
        return values if self._price is None else self._price.applied(values, rules)

    def _write(self, tx: Connection[Any], batch: Batch) -> list[tuple[str, str]]:
        """Write the records in arrays of 100; if one is refused, each array by itself, then each of its records."""
        try:
            with tx.transaction():
                for rows in batched(batch.mapped, self.settings.upsert):
                    self._upsert(tx, rows)
            written = self._targets(batch.mapped)
        except REFUSED:
            written = [
                each for rows in batched(batch.mapped, self.settings.upsert) for each in self._tried(tx, batch, rows)
            ]
        if batch.deleted:
            self.target.delete(tx, [target for _, target in batch.deleted])
        return written

    def _tried(self, tx: Connection[Any], batch: Batch, rows: Mapped) -> list[tuple[str, str]]:
        """Write an array; if the table refuses it, reject the records that it refuses one by one."""
        try:
            with tx.transaction():
                self._upsert(tx, rows)
            return self._targets(rows)
        except REFUSED as error:
            if len(rows) == 1:
                batch.rejected.append((rows[0][0], f"{type(error).__name__}: {error.diag.message_primary or error}"))
                return []
        return [each for row in rows for each in self._tried(tx, batch, [row])]

    def _targets(self, rows: Mapped) -> list[tuple[str, str]]:
        """Return the keys of records, each with its key in the target."""
        return [(key, str(values[self.target.key])) for key, values in rows]

    def _upsert(self, tx: Connection[Any], rows: Mapped) -> None:
        one_each = {values[self.target.key]: values for _, values in rows}  # of two with the same key the last wins
        self.target.upsert(tx, list(one_each.values()))

    def _mark(self, tx: Connection[Any], ctx: IngestCtx, batch: Batch, written: list[tuple[str, str]]) -> None:
        done = [*written, *batch.deleted]
        others = [None if key == target else target for key, target in done]
        given = [ctx.step_id, ctx.lease_id, Texts(key for key, _ in done), others if any(others) else None]
        tx.execute(MARK, given)
        if batch.rejected:
            keys, reasons = [key for key, _ in batch.rejected], [_storable(why) for _, why in batch.rejected]
            tx.execute(REJECT, [ctx.step_id, ctx.lease_id, "map", keys, reasons])


def batched(rows: list[Any], size: int) -> Iterator[list[Any]]:
    """Yield the rows in lists of `size`."""
    return (rows[place : place + size] for place in range(0, len(rows), size))


def _storable(text: str) -> str:
    return text.replace("\x00", "\ufffd").encode(errors="replace").decode()[:2000]
