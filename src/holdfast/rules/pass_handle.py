"""The handle of a pass of reconciliation, and reads of passes, of what they found and of an item's history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection

from holdfast.kernel.call import Executor
from holdfast.kernel.handle import Handle, Plan, follow
from holdfast.kernel.query import Query, query

_PASSES: LiteralString = """
select run_id, no, pass as kind, pass_id, status, total_checked, mismatches, superseded, unverifiable, unknown,
       accuracy, channel, due_at, started_at, finished_at, corrects, correction_run_id, tenant_id
  from rules.reconciliations
"""
_MISMATCHES: LiteralString = """
select rule_run_id, target_id, item_id, currency, expected, expected_compare_at, actual, actual_compare_at,
       actual_currency, difference, first_seen_at, last_seen_at, seen, is_current, last_pass, channel
  from rules.mismatches
 where (%(run_id)s::uuid is null or rule_run_id = %(run_id)s) and (is_current or not %(only_current)s)
 order by last_seen_at desc, target_id limit %(most)s
"""
_HISTORY: LiteralString = """
select id, channel, item_id, old_json, new_json, source, effect, rule_id, rule_version, rule_run_id, changed_at
  from rules.price_changes
 where item_id = %(item)s and (%(channel)s::text is null or channel = %(channel)s)
 order by id desc limit %(most)s
"""


@dataclass(frozen=True, slots=True)
class ReconciliationRow:
    """A pass: how many targets it checked, and how many differ from what was written. `accuracy` is in percent."""

    run_id: UUID
    no: int
    kind: str  # immediate, delayed, daily or manual
    pass_id: UUID
    status: str
    total_checked: int
    mismatches: int
    superseded: int
    unverifiable: int
    unknown: int
    accuracy: Decimal | None
    channel: str
    due_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    corrects: bool
    correction_run_id: UUID | None
    tenant_id: str


@dataclass(frozen=True, slots=True)
class MismatchRow:
    """A price that differs from what a run wrote, in minor units. `is_current`: the last pass over the run found it."""

    rule_run_id: UUID
    target_id: int
    item_id: str
    currency: str
    expected: int
    expected_compare_at: int | None
    actual: int | None
    actual_compare_at: int | None
    actual_currency: str | None
    difference: int | None
    first_seen_at: datetime
    last_seen_at: datetime
    seen: int
    is_current: bool
    last_pass: int
    channel: str


@dataclass(frozen=True, slots=True)
class PriceChangeRow:
    """A change of an item's price, by a run."""

    id: int
    channel: str
    item_id: str
    old_json: dict[str, Any]
    new_json: dict[str, Any]
    source: str
    effect: str
    rule_id: str
    rule_version: int
    rule_run_id: UUID
    changed_at: datetime


def passes_of(connection: Connection[Any], run_id: UUID) -> list[ReconciliationRow]:
    """Return the passes over a run, oldest first."""
    text: LiteralString = _PASSES + "where run_id = %(run_id)s order by no"
    return query(connection, Query(text, ReconciliationRow, {"run_id": run_id}))


def mismatches(
    connection: Connection[Any], run_id: UUID | None = None, *, only_current: bool = True, most: int = 1000
) -> list[MismatchRow]:
    """Return prices that differ from what runs wrote, the newest findings first."""
    arguments = {"run_id": run_id, "only_current": only_current, "most": most}
    return query(connection, Query(_MISMATCHES, MismatchRow, arguments))


def history(
    connection: Connection[Any], item: str, *, channel: str | None = None, most: int = 100
) -> list[PriceChangeRow]:
    """Return the changes of an item's price, newest first."""
    return query(connection, Query(_HISTORY, PriceChangeRow, {"item": item, "channel": channel, "most": most}))


def failed_by_reason(connection: Connection[Any], run_id: UUID) -> dict[str, int]:
    """Return how many targets of a run failed, by their reasons."""
    text: LiteralString = """
    select coalesce(jsonb_object_agg(t.reason, t.targets), '{}') as reasons
      from (select reason, count(*) as targets from rules.rule_targets
             where rule_run_id = %(run_id)s and status = 'FAILED' group by reason) t
    """
    (found,) = query(connection, Query(text, dict, {"run_id": run_id}))
    return dict(found)


def limit_of(connection: Connection[Any], channel: str) -> dict[str, Any] | None:
    """Return the limit of a channel: its rule, how much of it is used, its pause and its breaker."""
    text: LiteralString = """
    select jsonb_strip_nulls(jsonb_build_object(
             'concurrency', concurrency, 'rate', rate, 'held', held, 'parked', parked, 'pausedUntil', paused_until,
             'breaker', breaker)) as state
      from holdfast.limit_list where name = %(name)s limit 1
    """
    rows = query(connection, Query(text, dict, {"name": f"rules:{channel}"}))
    return dict(rows[0]) if rows else None


class PassHandle(Handle[ReconciliationRow]):
    """A pass of reconciliation. Its result is what it counted."""

    _label = "pass"

    def __init__(self, pass_id: UUID, executor: Executor) -> None:
        self._id = pass_id
        self._executor: Executor = executor

    @property
    def id(self) -> UUID:
        """The id of the pass's own run."""
        return self._id

    @property
    def summary(self) -> ReconciliationRow:
        """The pass as it is now."""
        return follow(self._executor, self._value(None))

    def _value(self, stored: Any) -> Plan[ReconciliationRow]:  # noqa: ARG002 - the pass itself is the result
        text: LiteralString = _PASSES + "where pass_id = %(pass_id)s"
        rows: list[ReconciliationRow] = yield Query(text, ReconciliationRow, {"pass_id": self._id})
        return (yield from self._first(rows))
