"""Limits under faults: a record of what each lease was charged, and the judge of what was exceeded or leaked.

The journal says when a lease ended, but by its trigger's clock. What a claim was charged counts from the time that it
read under the limits' locks, so a trigger of the test's own keeps that, with refunds as negative charges.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from fractions import Fraction
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from scenarios.crew import Database, until

RECORD = """
create table public.charged (name text, lease_id bigint, at timestamptz, charge numeric);
create function public.record_charges() returns trigger language plpgsql security definer as $$
begin
  insert into public.charged
  select t.name, c.lease_id, c.at, c.charge
    from (select n.holds, n.lease_id, n.claimed_at as at, coalesce(n.charge, 1) as charge
            from n join o using (id)
           where n.lease_id is not null and o.lease_id is null
          union all
          select o.holds, o.lease_id, holdfast.clock(), -coalesce(o.charge, 1)
            from n join o using (id)
           where n.lease_id is null and o.lease_id is not null and n.last_event = 'released') c
   cross join unnest(c.holds) h (limit_id)
    join holdfast.limit_states t on t.id = h.limit_id;
  return null;
end
$$;
create trigger recorded after update on holdfast.steps
  referencing old table as o new table as n for each statement execute function public.record_charges();
"""
LEASES = """
select c.name, c.at, coalesce(j.at, holdfast.clock())
  from public.charged c
  left join holdfast.journal j on j.lease_id = c.lease_id and j.event <> 'claimed'
 where c.charge > 0
"""
CHARGES = "select name, at, charge from public.charged order by name, at, charge desc"
RULES = "select name, concurrency, rate, per, burst from holdfast.limits"
HELD_OR_PARKED = """
select name, held, parked from holdfast.limit_states where held <> 0 or parked <> 0
union all
select 'steps', 0, count(*) from holdfast.steps where parked_for = 'limit' having count(*) > 0
"""
NOT_FULL = "select name, tokens, burst from holdfast.limit_list where burst is not null and tokens < burst"


class Rule(NamedTuple):
    """What a limit allows; a part that is None allows anything."""

    concurrency: int | None
    rate: float | None
    per: timedelta | None
    burst: float | None


def record(database: Database) -> None:
    """Keep what each lease is charged, from now on."""
    database.do(RECORD)  # type: ignore[arg-type]


def define(database: Database, name: str, **rule: Any) -> None:
    """Define a limit, by the names that SQL has for its parts."""
    parts = ", ".join(f"{part} => %s" for part in rule)
    database.rows(f"select holdfast.define_limit(%s, {parts})", name, *rule.values())


def check_limits(database: Database) -> int:
    """Find nothing that was exceeded or leaked once all work is done; give how many leases were under limits."""
    rules = {name: Rule(*parts) for name, *parts in database.rows(RULES)}
    leases = sorted(database.rows(LEASES))
    for name, some in groupby(leases, key=itemgetter(0)):
        most = most_at_once([(since, until_) for _, since, until_ in some])
        allowed = rule_of(rules, name).concurrency
        assert allowed is None or most <= allowed, f"{name}: {most} leases at once, allowed are {allowed}"
    for name, some in groupby(database.rows(CHARGES), key=itemgetter(0)):
        over = overdrawn([(at, Fraction(charge)) for _, at, charge in some], rule_of(rules, name))
        assert over <= 0, f"{name}: {float(over)} tokens were charged that it did not have"
    assert database.rows(HELD_OR_PARKED) == []
    until(lambda: database.rows(NOT_FULL) == [], "all tokens came back")
    return len(leases)


def rule_of(rules: dict[str, Rule], name: str) -> Rule:
    """Find the rule of a limit, or that of its family."""
    return rules.get(name) or rules[f"{name.partition(':')[0]}:*"]


def most_at_once(spans: list[tuple[datetime, datetime]]) -> int:
    """Count how many spans overlap; one that ends when another begins does not."""
    changes = sorted([(since, 1) for since, _ in spans] + [(until_, -1) for _, until_ in spans])
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def overdrawn(charges: list[tuple[datetime, Fraction]], rule: Rule) -> Fraction:
    """Find by how much, in the worst span, more was charged than its burst and what came back in that time."""
    if rule.rate is None or rule.per is None or rule.burst is None:
        return Fraction(0)
    per_microsecond = Fraction(rule.rate) / (rule.per // timedelta(microseconds=1))
    worst = level = Fraction(-rule.burst)  # minus what a bucket would hold that is full at first
    last: datetime | None = None
    for at, charge in charges:
        elapsed = 0 if last is None else (at - last) // timedelta(microseconds=1)
        level = max(Fraction(-rule.burst), level - per_microsecond * elapsed) + charge
        worst, last = max(worst, level), at
    return worst
