"""Limits for people: their rules, current state and changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

from holdfast.kernel.query import Query


@dataclass(frozen=True, slots=True)
class LimitDetail:
    """A rule, or a limit in use with its rule."""

    name: str
    tenant: str
    rule: str | None
    concurrency: int | None
    rate: float | None
    per: float | None  # seconds, as is breaker_for
    burst: float | None
    breaker_after: int | None
    breaker_for: float | None
    breaker_counts: list[str] | None
    held: int
    tokens: float | None
    parked: int
    oldest_parked_at: datetime | None
    wake_at: datetime | None
    paused_until: datetime | None
    paused_by: str | None
    reason: str | None
    breaker: str | None
    open_until: datetime | None
    failures_in_a_row: int


@dataclass(frozen=True, slots=True)
class LimitRule:
    """A rule as it is defined, for one tenant or for all."""

    tenant: str
    concurrency: int | None
    rate: float | None
    per: float | None  # seconds, as is breaker_for
    burst: float | None
    breaker_after: int | None
    breaker_for: float | None
    breaker_counts: list[str] | None


@dataclass(frozen=True, slots=True)
class LimitChange:
    """Who changed a limit, and how."""

    at: datetime
    name: str
    tenant: str
    event: str
    actor: str
    actor_kind: str  # `worker`: its app defined the rule, or an outcome paused the limit
    reason: str | None
    payload: str  # the rule or the pause, as JSON


LIMITS: LiteralString = """
select l.name, l.tenant, l.rule, l.concurrency, l.rate::float8, extract(epoch from l.per)::float8 as per,
       l.burst::float8, l.breaker_after, extract(epoch from l.breaker_for)::float8 as breaker_for, l.breaker_counts,
       l.held, l.tokens::float8, l.parked, l.oldest_parked_at, l.wake_at, l.paused_until, l.paused_by, l.reason,
       l.breaker, l.open_until, l.failures_in_a_row
  from holdfast.limit_list l
 where %(name)s::text is null or l.name = %(name)s or holdfast.limit_family(l.name) = %(name)s
 order by l.parked > 0 desc, l.name, l.tenant
 limit %(most)s
"""
RULES: LiteralString = """
select r.tenant, r.concurrency, r.rate::float8, extract(epoch from r.per)::float8 as per, r.burst::float8,
       r.breaker_after, extract(epoch from r.breaker_for)::float8 as breaker_for, r.breaker_counts
  from holdfast.limits r
 where r.name = %(name)s
 order by r.tenant limit 20
"""
CHANGES: LiteralString = """
select c.at, c.name, c.tenant, c.event, c.actor, c.actor_kind, c.reason, c.payload::text
  from holdfast.limit_changes c
 where (c.name = %(name)s or (%(name)s like '%%:*' and starts_with(c.name, rtrim(%(name)s, '*'))))
   and coalesce(c.tenant = any ((select holdfast.allowed_tenants())::text[]), true)
 order by c.id desc limit %(most)s
"""


def limits(name: str | None = None, *, most: int = 200) -> Query[LimitDetail]:
    """Return the query for all limits, or for one limit and the values of a family."""
    return Query(LIMITS, LimitDetail, {"name": name, "most": most})


def rules(name: str) -> Query[LimitRule]:
    """Return the query for the rules with this name, one per tenant."""
    return Query(RULES, LimitRule, {"name": name})


def changes(name: str, *, most: int = 20) -> Query[LimitChange]:
    """Return the query for the changes of a limit, or of a family and its values, the latest first."""
    return Query(CHANGES, LimitChange, {"name": name, "most": most})
