-- A task of the leased worker loop (document 004), with cancel, and with retry and resolve by hand.
insert into holdfast.machines (machine, subject, policy, label) values ('work.task', 'step', 'work.task', 'task')
on conflict (machine) do update set policy = excluded.policy, label = excluded.label;

insert into holdfast.machine_states (machine, state, phase, outcome, is_initial) values
  ('work.task', 'pending',   'open', null,        true),
  ('work.task', 'running',   'held', null,        false),
  ('work.task', 'done',      'over', 'succeeded', false),
  ('work.task', 'error',     'over', 'failed',    false),
  ('work.task', 'cancelled', 'over', 'cancelled', false)
on conflict (machine, state) do update
  set phase = excluded.phase, outcome = excluded.outcome, is_initial = excluded.is_initial;

-- machine, from_state, event, to_state, actors: a worker may retry a running task, which is then pending.
insert into holdfast.machine_moves (machine, from_state, event, to_state, actors) values
  ('work.task', 'pending', 'claimed',   'running',   '{worker}'),
  ('work.task', 'running', 'succeeded', 'done',      '{worker}'),
  ('work.task', 'running', 'retried',   'pending',   '{worker}'),
  ('work.task', 'running', 'failed',    'error',     '{worker,system}'),
  ('work.task', 'running', 'snoozed',   'pending',   '{worker}'),
  ('work.task', 'running', 'released',  'pending',   '{worker}'),
  ('work.task', 'running', 'continued', 'pending',   '{worker}'),
  ('work.task', 'running', 'expired',   'pending',   '{system}'),
  ('work.task', 'running', 'cancelled', 'cancelled', '{user,api,system,scheduler}'),
  ('work.task', 'pending', 'cancelled', 'cancelled', '{user,api,system,worker,scheduler}'),
  ('work.task', 'error',   'reopened',  'pending',   '{user,api,system}'),
  ('work.task', 'error',   'resolved',  'done',      '{user,api}')
on conflict (machine, from_state, event) do update set to_state = excluded.to_state, actors = excluded.actors;
