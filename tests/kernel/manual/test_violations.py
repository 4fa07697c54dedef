"""X-13: each invariant of holdfast.violations() is reported, and nothing else, where rows break it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

import pytest

from holdfast.testing import Clock
from kernel.limits import limit
from kernel.plans import begun, install
from kernel.schedules import define, fire
from kernel.steps import DB, claim, finish, node, start, start_flow, value, violations

pytestmark = [pytest.mark.unsound, pytest.mark.one_server]
DUE = "update holdfast.steps set {} where id = %(due)s"
SCHEDULE = "schedule report of default"
PLAN = "update holdfast.runs set {} where id = %(plan)s"
RUN = "update holdfast.runs set {} where id = %(run)s"
KEEP_ONE_MONTH = """
do $$ declare part regclass; begin
  for part in select i.inhrelid::regclass from pg_inherits i where i.inhparent = 'holdfast.journal'::regclass
               order by i.inhrelid::regclass::text offset 1 loop
    execute 'drop table ' || part;
  end loop;
end $$
"""


@dataclass(frozen=True)
class Corruption:
    """A change that breaks an invariant, and what it is reported of; the names stand for the rows of `sound_rows`."""

    invariant: str
    change: str
    subject: str
    later: timedelta = timedelta(0)  # when it is looked at


CORRUPTIONS = [
    Corruption("state_is_known", DUE.format("state = 'lost'"), "step %(due)s"),
    Corruption(
        "held_has_a_lease",
        DUE.format("due_at = null, lease_id = 0, lease_owner = 'w', lease_until = now() + interval '1 day'"),
        "step %(due)s",
    ),
    Corruption("over_is_finished", DUE.format("due_at = null, finished_at = now()"), "step %(due)s"),
    Corruption("open_is_reachable", DUE.format("due_at = null"), "step %(due)s"),
    Corruption(
        "machine_has_the_move",
        DUE.format("due_at = null, parked_due_at = now(), parked_for = 'move'"),
        "step %(due)s",
    ),
    Corruption("priority_is_looked_at", DUE.format("priority = 7"), "step %(due)s"),
    Corruption("waits_for_parents", "update holdfast.steps set waits = 2 where id = %(child)s", "step %(child)s"),
    Corruption(
        "lease_is_held_once", "update holdfast.steps set lease_id = %(lease)s where id = %(other)s", "lease %(lease)s"
    ),
    Corruption(
        "lease_was_rescued",
        "update holdfast.steps set lease_until = now() - interval '11 minutes' where id = %(held)s",
        "step %(held)s",
    ),
    Corruption(
        "step_is_in_its_run",
        f"with gone as (delete from holdfast.run_steps where step_id = %(child)s) {RUN.format('total = 1')}",
        "step %(child)s",
    ),
    Corruption("run_counts_its_steps", RUN.format("total = 3"), "run %(run)s"),
    Corruption(
        "run_without_live_steps_is_over",
        "update holdfast.runs set finished_at = null where id = %(over)s",
        "run %(over)s",
    ),
    Corruption(
        "run_has_steps",
        "with gone as (delete from holdfast.run_steps where run_id = %(over)s), "
        "step as (delete from holdfast.steps where run_id = %(over)s) "
        "update holdfast.runs set total = 0, succeeded = 0, finished_at = null, "
        "created_at = now() - interval '2 hours' where id = %(over)s",
        "run %(over)s",
    ),
    Corruption("run_that_is_over_has_no_live_steps", RUN.format("finished_at = holdfast.clock()"), "run %(run)s"),
    Corruption(
        "journal_is_a_chain",
        "update holdfast.journal set from_state = 'pending' where id = %(entry)s",
        "journal %(entry)s",
    ),
    Corruption(
        "journal_ends_where_the_row_is",
        "update holdfast.steps set state = 'cancelled' where id = %(done)s",
        "step %(done)s",
    ),
    Corruption(
        "journal_ends_where_the_row_is", "update holdfast.steps set attempt = 2 where id = %(done)s", "step %(done)s"
    ),
    Corruption(
        "journal_ends_where_the_row_is",
        "update holdfast.runs set state = 'cancelled' where id = %(over)s",
        "run %(over)s",
    ),
    Corruption("moved_is_journaled", "delete from holdfast.journal where step_id = %(held)s", "step %(held)s"),
    Corruption("trigger_fires", "alter table holdfast.edges disable trigger acyclic", "edges.acyclic"),
    Corruption("trigger_fires", "alter table holdfast.runs enable replica trigger begins", "runs.begins"),
    Corruption("trigger_fires", "drop trigger stays on holdfast.notes", "notes.stays"),
    Corruption("row_security_is_forced", "alter table holdfast.notes no force row level security", "notes"),
    Corruption("row_security_is_forced", "alter table holdfast.steps disable row level security", "steps"),
    Corruption("limit_counts_its_holders", "update holdfast.limit_states set held = 2", "limit api of *"),
    Corruption("limit_counts_its_queue", "update holdfast.limit_states set parked = 2", "limit api of *"),
    Corruption("parked_is_refused", "update holdfast.limits set concurrency = 2", "limit api of *"),
    Corruption(
        "parked_on_a_limit",
        "with uncounted as (update holdfast.limit_states set parked = 0) "
        "update holdfast.steps set limited_by = 0 where id = %(parked)s",
        "step %(parked)s",
    ),
    Corruption("schedule_has_a_next_tick", "update holdfast.schedules set wake_at = null", SCHEDULE),
    Corruption("tick_is_recorded", "delete from holdfast.ticks", SCHEDULE),
    Corruption(
        "planned_ticks_ascend",
        "update holdfast.schedules set upcoming = array[after_at], next_at = after_at + shift",
        SCHEDULE,
    ),
    Corruption(
        "tick_is_fired",
        "with old as (update holdfast.workers set started_at = started_at - interval '1 hour') "
        "update holdfast.schedules set wake_at = wake_at - interval '2 hours'",
        SCHEDULE,
    ),
    Corruption(
        "run_is_whole",
        "insert into holdfast.run_steps (run_id, step_id) values ('00000000-0000-7000-8000-000000000000', 0)",
        "run 00000000-0000-7000-8000-000000000000",
    ),
    Corruption("edge_joins_two_steps", "insert into holdfast.edges (step_id, next_id) values (-1, 0)", "step 0"),
    Corruption(
        "noted_step_exists",
        "insert into holdfast.note_keys (step_id, key, note_id, expires_at) values (0, 'k', 1, 'infinity')",
        "step 0",
    ),
    Corruption("window_admits_what_there_is", PLAN.format("to_admit = 4"), "run %(plan)s"),
    Corruption("window_leaves_no_step_behind", PLAN.format("admitted_until = 1e9"), "run %(plan)s"),
    Corruption("last_lot_is_admitted", PLAN.format("to_admit = 0"), "run %(plan)s"),
    Corruption("window_is_not_exceeded", PLAN.format("window_size = 2"), "run %(plan)s"),
    Corruption(
        "run_that_is_over_admits_none", "update holdfast.runs set to_admit = 1 where id = %(over)s", "run %(over)s"
    ),
    Corruption("stopped_run_has_no_due_steps", RUN.format("halt = 'stopped', halted_at = now()"), "step %(parent)s"),
    Corruption(
        "parked_while_its_run_is_paused",
        "update holdfast.steps set due_at = null, parked_due_at = now(), parked_for = 'run x' where id = %(parent)s",
        "step %(parent)s",
    ),
    Corruption(
        "times_follow_each_other",
        "alter table holdfast.runs drop constraint times_follow_each_other; "
        "update holdfast.runs set started_at = '2000-01-01' where state = 'complete'",
        "run %(over)s",
    ),
    Corruption("retention_sweeps", "delete from holdfast.retention_sweep", "retention_sweep"),
    Corruption("partitions_are_ahead", KEEP_ONE_MONTH, "journal", later=timedelta(days=3)),
]


def sound_rows(db: DB) -> dict[str, object]:
    """Make what the corruptions change; by itself it breaks nothing."""
    define(db, every=timedelta(hours=1))
    Clock(db).advance("1h")
    fire(db)
    run_id = start_flow(db, node("parent"), node("child", after=["parent"]))
    over = start_flow(db, node("only", queue="over"))
    finish(db, claim(db, queue="over"))
    held, other, done = (start(db, queue="held") for _ in range(3))
    claimed = claim(db, queue="held", batch=3, lease=timedelta(days=300))
    finish(db, [step for step in claimed if step.step_id == done])
    lease = next(step.lease_id for step in claimed if step.step_id == held)
    install(db, 3)
    plan = begun(db, 6)
    parent = value(db, "select step_id from holdfast.run_steps where run_id = %s and name = 'parent'", run_id)
    child = value(db, "select step_id from holdfast.run_steps where run_id = %s and name = 'child'", run_id)
    entry = value(db, "select id from holdfast.journal where step_id = %s and event = 'succeeded'", done)
    limit(db, "api", concurrency=1)
    parked = [start(db, queue="limited", limits=["api"]) for _ in range(2)][1]
    claim(db, queue="limited", batch=2, lease=timedelta(days=300))
    rows: dict[str, object] = {
        "parked": parked,
        "run": run_id,
        "child": child,
        "parent": parent,
        "plan": plan,
        "over": over,
        "entry": entry,
        "lease": lease,
    }
    return rows | {"due": start(db, queue="due"), "held": held, "other": other, "done": done}


@pytest.mark.parametrize("corruption", CORRUPTIONS, ids=lambda corruption: corruption.invariant)
def test_what_breaks_an_invariant_is_reported_and_nothing_else(db: DB, clock: Clock, corruption: Corruption) -> None:
    rows = sound_rows(db)
    assert violations(db) == []

    db.execute("set session_replication_role = replica")  # no trigger fires
    db.execute(corruption.change, rows if "%(" in corruption.change else None)
    db.execute("set session_replication_role = origin")
    clock.advance(corruption.later)

    assert violations(db) == [(corruption.invariant, corruption.subject % rows)]


def test_each_invariant_has_a_corruption(db: DB) -> None:
    sources = db.execute(
        "select prosrc from pg_proc where pronamespace = 'holdfast'::regnamespace and proname like '%violations'"
    ).fetchall()

    invariants = {name for (source,) in sources for name in re.findall(r"^\s*select '(\w+)',", source, re.MULTILINE)}

    assert len(invariants) >= 23
    assert invariants == {corruption.invariant for corruption in CORRUPTIONS}
