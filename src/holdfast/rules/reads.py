"""Reads of rule runs, targets, refusals, rules and channels, for the handle and the command line."""

from __future__ import annotations

import re
from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection

from holdfast.errors import NotFound, WrongState
from holdfast.kernel.query import Query, query, query_one
from holdfast.reads.retention import raise_if_pruned
from holdfast.rules.rows import (
    ChannelRow,
    Difference,
    LaterChange,
    PlannedTime,
    RefusalRow,
    RuleRow,
    RuleRunRow,
    StateRow,
    TargetRow,
)

_NUMBER = re.compile("[0-9]{1,18}")
_RUN: LiteralString = """
select id, tenant_id, project_id, rule_id, rule_version, channel, source, status, metadata, plan_hash, expires_at,
       counts, error, reason, created_at, queued_at, started_at, finished_at, parent_run_id, plan,
       halt, expires_at <= holdfast.clock() as is_expired
  from rules.rule_runs
"""
# A target is read by its number, whatever the statistics say: `offset 0` keeps the planner from reading a whole run and
# sorting it. So the queries list numbers first, by an index that has them in order.
_TARGET: LiteralString = """
select t.id, t.rule_run_id, t.item_id, t.included, t.status, t.attempts, t.apply_seq, t.before_json, t.after_json,
       t.found_json, t.reason, t.error, t.error_class, t.retryable, t.applied_at, t.last_attempt_at, t.next_due_at,
       t.resolved_at, t.writes_price, t.writes_compare_at, t.later_run_id
  from """
_BY_NUMBER: LiteralString = """
 cross join lateral (
   select * from rules.rule_targets r where r.rule_run_id = %(run_id)s and r.id = numbers.id offset 0) t
"""
_ALL: LiteralString = """(
  select n.step_id as id from holdfast.run_steps n
   where n.run_id = %(run_id)s and n.step_id > %(after)s order by n.step_id) numbers
"""
_OF_ITEMS: LiteralString = """(
  select v.step_id as id from rules.target_values v
   where v.run_id = %(run_id)s and v.item_id = any (%(items)s) offset 0) numbers
"""
_OF_ITEM_OR_NUMBER: LiteralString = """(
  select v.step_id as id from rules.target_values v where v.run_id = %(run_id)s and v.item_id = %(item)s
  union all
  select n.step_id from holdfast.run_steps n where n.run_id = %(run_id)s and n.step_id = %(number)s) numbers
"""
_PAGE: LiteralString = """
 where %(status)s::text is null or t.status = %(status)s
 order by numbers.id limit %(most)s
"""
_NUMBERED: LiteralString = "unnest(%(numbers)s::bigint[]) numbers (id)"
_IDLE: LiteralString = """
select r.queued_at is null and not exists (
         select from holdfast.schedule_list s
          where s.tenant = r.tenant_id and s.name = 'rules:apply:' || r.id and s.ended_at is null) as is_idle
  from rules.rule_runs r where r.id = %(run_id)s
"""
_LATER: LiteralString = """
select u.item_id, l.rule_run_id as run_id, (l.new_json ->> 'unit_amount')::bigint as unit_amount, l.changed_at as at
  from rules.rule_runs r
 cross join unnest(%(items)s::text[]) u (item_id)
 cross join lateral (
   select c.rule_run_id, c.new_json, c.changed_at from rules.price_changes c
    where c.tenant_id = r.tenant_id and c.channel = r.channel and c.item_id = u.item_id order by c.id desc limit 1) l
 where r.id = %(run_id)s and l.rule_run_id <> r.id
"""
# The task of an undo is open as long as it waits, and has written an event for each run that was in its way.
_TIMES: LiteralString = """
select split_part(s.name, ':', 2) as what, s.name as schedule, s.at, s.state, s.last_error as error,
       case when t.id is null then null
            when t.claimed_at is null then 'no worker has taken its task'
            when f.is_open then 'the run is being stopped'
            else coalesce(w.reason, 'its task looks again') end as waits,
       case when t.claimed_at is null then null when f.is_open then f.run_id else w.run_id end as waits_for
  from rules.run_facts f
  join holdfast.schedule_list s
    on s.tenant = f.tenant and s.name in ('rules:apply:' || f.run_id, 'rules:revert:' || f.run_id)
  left join lateral (
    select h.id, h.claimed_at from holdfast.steps h
     where h.id = case when s.name like 'rules:revert:%%' then s.last_ids[1]::bigint end
       and h.finished_at is null offset 0) t on true
  left join lateral (
    select e.payload ->> 'reason' as reason, o.run_id
      from rules.stored_events e
      join rules.run_facts o on o.run_id::text = split_part(e.event_key, ':', 4) and o.is_open
     where t.id is not null and e.run_id = f.run_id and e.event_key like f.run_id || ':revert:waiting:%%'
     order by e.id desc limit 1) w on true
 where f.run_id = %(run_id)s
 order by s.at
"""
_REFUSALS: LiteralString = """
select id, item_id, reason, message, currency, price_before, price_after
  from rules.refusals where rule_run_id = %(run_id)s and id > %(after)s order by id limit %(most)s
"""
_DIFFERENCE: LiteralString = """
with was as (select item_id, before_json, after_json from rules.rule_targets where rule_run_id = %(old)s),
     now as (select item_id, before_json, after_json from rules.rule_targets where rule_run_id = %(new)s)
select count(*) filter (where w.item_id is null) as added, count(*) filter (where n.item_id is null) as gone,
       count(*) filter (where (w.before_json, w.after_json) <> (n.before_json, n.after_json)) as changed,
       count(*) filter (where (w.before_json, w.after_json) = (n.before_json, n.after_json)) as same
  from was w full join now n using (item_id)
"""


def run_query(run_id: UUID) -> Query[RuleRunRow]:
    """Return the query for a run."""
    return Query(_RUN + "where id = %(run_id)s", RuleRunRow, {"run_id": run_id})


def run_of(connection: Connection[Any], run_id: UUID) -> RuleRunRow:
    """Return a run; raise Pruned or NotFound."""
    run = query_one(connection, run_query(run_id))
    if run is None:
        raise_if_pruned(connection, run_id)
        raise NotFound(f"there is no rule run {run_id}", where=str(run_id), next="list them: holdfast rules list")
    return run


def is_idle(run_id: UUID) -> Query[bool]:
    """Return the query for whether nobody applied a run, now or by the clock."""
    return Query(_IDLE, bool, {"run_id": run_id})


def check_applied(run_id: UUID, idle: list[bool]) -> None:
    """Raise WrongState if a run is idle: it would be waited for in vain."""
    if any(idle):
        raise WrongState(
            f"run {run_id} is a preview and has no result", where=str(run_id),
            next=f"apply it: run.apply(), or holdfast rules apply {run_id}",
        )  # fmt: skip


def newest_runs(connection: Connection[Any], *, status: str | None, rule: str | None, most: int) -> list[RuleRunRow]:
    """Return the newest runs first."""
    text: LiteralString = (
        _RUN + "where (%(status)s::text is null or status = %(status)s) and (%(rule)s::text is null "
        "or rule_id = %(rule)s) order by id desc limit %(most)s"
    )
    return query(connection, Query(text, RuleRunRow, {"status": status, "rule": rule, "most": most}))


def targets_page(
    connection: Connection[Any], run_id: UUID, *, after: int = 0, most: int = 1000, status: str | None = None
) -> list[TargetRow]:
    """Return the next targets of a run, in order."""
    return query(connection, targets_query(run_id, after=after, most=most, status=status))


def targets_query(run_id: UUID, *, after: int, most: int, status: str | None) -> Query[TargetRow]:
    """Return the query for the next targets of a run, in order."""
    arguments = {"run_id": run_id, "after": after, "most": most, "status": status}
    return Query(_TARGET + _ALL + _BY_NUMBER + _PAGE, TargetRow, arguments)


def targets_of_items(connection: Connection[Any], run_id: UUID, items: list[str]) -> list[TargetRow]:
    """Return the targets of some items."""
    text: LiteralString = _TARGET + _OF_ITEMS + _BY_NUMBER + "order by t.id"
    return query(connection, Query(text, TargetRow, {"run_id": run_id, "items": items}))


def targets_by_number(connection: Connection[Any], run_id: UUID, numbers: list[int]) -> list[TargetRow]:
    """Return some targets by their numbers."""
    text: LiteralString = _TARGET + _NUMBERED + _BY_NUMBER + "order by t.id"
    return query(connection, Query(text, TargetRow, {"run_id": run_id, "numbers": numbers}))


def later_changes(connection: Connection[Any], run_id: UUID, items: list[str]) -> list[LaterChange]:
    """Return the newest change of each item, where another run made it after this one."""
    return query(connection, Query(_LATER, LaterChange, {"run_id": run_id, "items": items}))


def target_of(connection: Connection[Any], run_id: UUID, item: str) -> TargetRow:
    """Return a target by its item's id or its own number; raise NotFound."""
    number = int(item) if _NUMBER.fullmatch(item) else None
    text: LiteralString = _TARGET + _OF_ITEM_OR_NUMBER + _BY_NUMBER + "limit 1"
    target = query_one(connection, Query(text, TargetRow, {"run_id": run_id, "item": item, "number": number}))
    if target is None:
        listed = f"list them: holdfast rules targets {run_id}"
        raise NotFound(f"run {run_id} has no target {item}", where=item, next=listed)
    return target


def refusals_page(connection: Connection[Any], run_id: UUID, *, after: int = 0, most: int = 1000) -> list[RefusalRow]:
    """Return the next refusals of a run, in order."""
    return query(connection, Query(_REFUSALS, RefusalRow, {"run_id": run_id, "after": after, "most": most}))


def planned_times(connection: Connection[Any], run_id: UUID) -> list[PlannedTime]:
    """Return when the clock applies and undoes a run, also times that have passed, and what an undo waits for."""
    return query(connection, Query(_TIMES, PlannedTime, {"run_id": run_id}))


def channels(connection: Connection[Any]) -> list[ChannelRow]:
    """Return the channels that workers registered."""
    text: LiteralString = """
    select channel, tenant_id, kind, about, batch, request_timeout, target_timeout, queue, open_runs
      from rules.channels order by channel, tenant_id
    """
    return query(connection, Query(text, ChannelRow, {}))


def rules(connection: Connection[Any], name: str | None = None, tenant: str | None = None) -> list[RuleRow]:
    """Return the rules as they are defined now, of one tenant or of all that the login may see."""
    text: LiteralString = """
    select rule_id, tenant_id, version, definition, defined_at, defined_by
      from rules.rule_list
     where (%(name)s::text is null or rule_id = %(name)s) and (%(tenant)s::text is null or tenant_id = %(tenant)s)
     order by rule_id, tenant_id
    """
    return query(connection, Query(text, RuleRow, {"name": name, "tenant": tenant}))


def difference(connection: Connection[Any], old: UUID, new: UUID) -> Difference:
    """Compare two plans by items."""
    (found,) = query(connection, Query(_DIFFERENCE, Difference, {"old": old, "new": new}))
    return found


def states(connection: Connection[Any], machine: str) -> dict[str, StateRow]:
    """Return the states of a machine by name."""
    text: LiteralString = "select state, phase, outcome from holdfast.machine_states where machine = %(machine)s"
    return {each.state: each for each in query(connection, Query(text, StateRow, {"machine": machine}))}


def recent_ids() -> Query[str]:
    """Return the query for recent ids, for completion."""
    return Query("select id::text from rules.rule_runs order by id desc limit 50", str, {})
