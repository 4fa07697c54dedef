"""A machine of runs with a window, as rows: a plan is drafted, queued and carried out item by item."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from holdfast.kernel import calls
from holdfast.kernel.db import run
from kernel.steps import DB, stage

MACHINES = """
insert into holdfast.machines (machine, subject, policy, label, window_size) values
  ('test.plan', 'run', null, 'plan', 10), ('test.item', 'step', 'work.task', 'item', null),
  ('test.rush', 'run', null, 'rush', 10)
on conflict do nothing;
insert into holdfast.machine_states (machine, state, phase, outcome, is_initial)
select m.machine, s.state, s.phase, s.outcome, s.state = case when m.machine = 'test.rush' then 'ready' else 'draft' end
  from (values ('draft', 'shut', null), ('ready', 'open', null), ('going', 'held', null), ('done', 'over', 'succeeded'),
               ('mixed', 'over', 'partial'), ('lost', 'over', 'failed'), ('dropped', 'over', 'cancelled'))
         s (state, phase, outcome), (values ('test.plan'), ('test.item'), ('test.rush')) m (machine)
on conflict do nothing;
insert into holdfast.machine_moves (machine, from_state, event, to_state, actors)
select m.machine, v.* from (values
  ('draft', 'queued', 'ready', '{api,user,scheduler}'::text[]),
  ('draft', 'cancelled', 'dropped', '{user,system}'),
  ('ready', 'started', 'going', '{worker,system}'),
  ('ready', 'cancelled', 'dropped', '{user,system}'),
  ('going', 'all_succeeded', 'done', '{worker,system}'),
  ('going', 'some_failed', 'mixed', '{worker,system}'),
  ('going', 'none_succeeded', 'lost', '{worker,system}'),
  ('going', 'cancelled', 'dropped', '{user,system}'),
  ('mixed', 'reopened', 'going', '{user,system}'),
  ('lost', 'reopened', 'going', '{user,system}')) v, (values ('test.plan'), ('test.rush')) m (machine)
union all
select 'test.item', v.* from (values
  ('draft', 'queued', 'ready', '{api,user,scheduler,system}'::text[]),
  ('draft', 'cancelled', 'dropped', '{user,system,worker}'),
  ('ready', 'claimed', 'going', '{worker}'),
  ('ready', 'cancelled', 'dropped', '{user,system,worker}'),
  ('going', 'succeeded', 'done', '{worker}'),
  ('going', 'retried', 'ready', '{worker}'),
  ('going', 'snoozed', 'ready', '{worker}'),
  ('going', 'released', 'ready', '{worker}'),
  ('going', 'continued', 'ready', '{worker}'),
  ('going', 'expired', 'ready', '{system}'),
  ('going', 'failed', 'lost', '{worker,system}'),
  ('going', 'cancelled', 'dropped', '{user,system}'),
  ('lost', 'reopened', 'ready', '{worker,user,system}'),
  ('lost', 'cancelled', 'dropped', '{user,system,worker}')) v
on conflict do nothing
"""


def install(db: DB, window: int = 10) -> None:
    """Add the machines, with a window of that size."""
    db.execute(MACHINES)
    db.execute("update holdfast.machines set window_size = %s where window_size is not null", [window])


def draft(db: DB, items: int, machine: str = "test.plan", kind: str = "item", **options: Any) -> UUID:
    """Make a run with so many items; a plan is not queued yet, a rush is."""
    run_id = run(db, calls.start_run(machine, "plan", "test.item", **options))[0]
    stage(db, ((kind, f'{{"n": {number}}}') for number in range(items)), run_id=run_id, machine="test.item")
    return UUID(str(run_id))


def queue(db: DB, run_id: UUID, first: int | None = None) -> str:
    return run(db, calls.queue_run(str(run_id), first=first))[0]


def halt(db: DB, what: str, run_id: UUID, reason: str | None = None) -> str:
    """Pause, resume or stop a run."""
    call = {"pause": calls.pause_run, "resume": calls.resume_run, "stop": calls.stop_run}[what]
    return run(db, call(str(run_id), reason=reason))[0]


def begun(db: DB, items: int) -> UUID:
    """Make a run and queue it."""
    run_id = draft(db, items)
    queue(db, run_id)
    return run_id
