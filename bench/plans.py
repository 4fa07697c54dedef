"""A machine of runs with a window, which holdfast's own sections use: a plan is drafted, queued and carried out."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

import psycopg

from holdfast.kernel import bulk, calls
from holdfast.kernel.call import Call
from holdfast.kernel.db import run

WINDOW = 5000
MACHINES = f"""
insert into holdfast.machines (machine, subject, policy, label, window_size) values
  ('bench.plan', 'run', null, 'plan', {WINDOW}), ('bench.item', 'step', 'work.task', 'item', null);
insert into holdfast.machine_states (machine, state, phase, outcome, is_initial)
select m.machine, s.state, s.phase, s.outcome, s.state = 'draft'
  from (values ('draft', 'shut', null), ('ready', 'open', null), ('going', 'held', null), ('done', 'over', 'succeeded'),
               ('mixed', 'over', 'partial'), ('lost', 'over', 'failed'), ('dropped', 'over', 'cancelled'))
         s (state, phase, outcome), (values ('bench.plan'), ('bench.item')) m (machine);
insert into holdfast.machine_moves (machine, from_state, event, to_state, actors)
select 'bench.plan', v.from_state, v.event, v.to_state, '{{api,user,scheduler,worker,system}}'::text[] from (values
  ('draft', 'queued', 'ready'), ('ready', 'started', 'going'), ('ready', 'cancelled', 'dropped'),
  ('going', 'all_succeeded', 'done'), ('going', 'some_failed', 'mixed'), ('going', 'none_succeeded', 'lost'),
  ('going', 'cancelled', 'dropped')) v (from_state, event, to_state)
union all
select 'bench.item', v.from_state, v.event, v.to_state, '{{api,user,scheduler,worker,system}}' from (values
  ('draft', 'queued', 'ready'), ('draft', 'cancelled', 'dropped'), ('ready', 'claimed', 'going'),
  ('ready', 'cancelled', 'dropped'), ('going', 'succeeded', 'done'), ('going', 'retried', 'ready'),
  ('going', 'released', 'ready'), ('going', 'expired', 'ready'), ('going', 'failed', 'lost'),
  ('going', 'cancelled', 'dropped')) v (from_state, event, to_state)
"""


def install(admin: str) -> None:
    """Add the machines to a database that holdfast's schema is in."""
    with psycopg.connect(admin) as connection:
        connection.execute(MACHINES.encode())


def draft(dsn: str, items: int, *, machine: str = "bench.plan", step_machine: str = "bench.item") -> UUID:
    """Make a run with so many steps; a plan is not queued yet."""
    with psycopg.connect(dsn) as connection:
        steps = (bulk.Start("noop", "{}") for _ in range(items))
        return bulk.start_steps(connection, steps, machine=machine, name="bench", step_machine=step_machine)


def timed(dsn: str, call: Call[Any]) -> float:
    """Make a call in a transaction of its own, and return the seconds that it took."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        begun = time.perf_counter()
        run(connection, call)
        return time.perf_counter() - begun


def queue(dsn: str, run_id: UUID) -> float:
    """Queue a plan, and return the seconds that it took."""
    return timed(dsn, calls.queue_run(str(run_id)))
