"""Retention for people: its rules and their changes, the last sweep, and what was removed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection

from holdfast.kernel import db, retention_calls
from holdfast.kernel.query import Query
from holdfast.kernel.retention_calls import Removal


@dataclass(frozen=True, slots=True)
class Rule:
    """How long something is kept; `keep` is None if it is kept forever."""

    what: str
    tenant: str
    machine: str | None
    queue: str | None
    outcome: str | None
    keep: str | None
    rule: str
    set_at: datetime
    is_default: bool


@dataclass(frozen=True, slots=True)
class RuleChange:
    """Who changed a rule, and how."""

    at: datetime
    event: str
    what: str
    tenant: str
    machine: str | None
    queue: str | None
    outcome: str | None
    keep: str | None
    kept: str | None
    actor: str
    login: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class SweepState:
    """The sweep that is under way, or the last one."""

    begins_at: datetime
    next_at: datetime | None
    began_at: datetime | None
    ended_at: datetime | None
    steps: int
    runs: int
    keys: int
    ticks: int
    blocked_month: str | None
    blocked_at: datetime | None


RULES: LiteralString = """
select r.what, r.tenant, r.machine, r.queue, r.outcome, r.keep::text, r.rule, r.set_at, r.is_default
  from holdfast.retention_list r
 order by r.what = 'ticks', r.what = 'journal', not r.is_default, r.tenant <> '*', r.tenant,
          r.machine is not null, r.machine, r.queue is not null, r.queue, r.outcome is not null, r.outcome
"""
CHANGES: LiteralString = """
select c.at, c.event, c.what, c.tenant, c.machine, c.queue, c.outcome, c.keep::text, c.kept::text, c.actor, c.login,
       c.reason
  from holdfast.retention_changes c
 where c.tenant = '*' or coalesce(c.tenant = any ((select holdfast.allowed_tenants())::text[]), true)
 order by c.id desc limit %(most)s
"""
SWEEP: LiteralString = """
select w.begins_at, w.next_at, w.began_at, w.ended_at, w.steps, w.runs, w.keys, w.ticks, w.blocked_month, w.blocked_at
  from holdfast.sweep_state() w
"""


def rules() -> Query[Rule]:
    """Return the query for all rules, the general ones first."""
    return Query(RULES, Rule, {})


def changes(*, most: int = 20) -> Query[RuleChange]:
    """Return the query for the changes of rules, the latest first."""
    return Query(CHANGES, RuleChange, {"most": most})


def sweep_state() -> Query[SweepState]:
    """Return the query for the sweep's row."""
    return Query(SWEEP, SweepState, {})


def removal(connection: Connection[Any], id: int | UUID) -> Removal | None:  # noqa: A002 - the word is SQL's
    """Read what became of a task or run that is gone; None if it never existed, or is another tenant's."""
    return next(iter(db.run(connection, retention_calls.pruned(str(id)))), None)


def raise_if_pruned(connection: Connection[Any], id: int | UUID) -> None:  # noqa: A002
    """Raise Pruned if retention removed a task or run."""
    row = removal(connection, id)
    if row is not None:
        raise row.error()
