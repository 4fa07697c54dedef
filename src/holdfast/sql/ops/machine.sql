-- An ops run (document 002) is one step. Its ends are final; a worker that falls silent loses it to `cancelled`.
insert into holdfast.machines (machine, subject, policy, moved, label, started_by, own_parking, unparked_by)
values ('ops.run', 'step', 'ops.run', 'ops.record_moves', 'run', 'ops.queue_run', 'approval', 'ops.decide_approval')
on conflict (machine) do update set
  policy = excluded.policy, moved = excluded.moved, label = excluded.label, started_by = excluded.started_by,
  own_parking = excluded.own_parking, unparked_by = excluded.unparked_by;

insert into holdfast.machine_states (machine, state, phase, outcome, is_initial) values
  ('ops.run', 'queued',    'open', null,        true),
  ('ops.run', 'claimed',   'held', null,        false),
  ('ops.run', 'running',   'held', null,        false),
  ('ops.run', 'success',   'over', 'succeeded', false),
  ('ops.run', 'failed',    'over', 'failed',    false),
  ('ops.run', 'cancelled', 'over', 'cancelled', false)
on conflict (machine, state) do update
  set phase = excluded.phase, outcome = excluded.outcome, is_initial = excluded.is_initial;

insert into holdfast.machine_moves (machine, from_state, event, to_state, actors) values
  ('ops.run', 'queued',  'claimed',   'claimed',   '{worker}'),
  ('ops.run', 'claimed', 'started',   'running',   '{worker,system}'),
  ('ops.run', 'running', 'succeeded', 'success',   '{worker}'),
  ('ops.run', 'running', 'failed',    'failed',    '{worker,system}'),
  ('ops.run', 'running', 'cancelled', 'cancelled', '{user,api,system,worker,scheduler}'),
  ('ops.run', 'claimed', 'cancelled', 'cancelled', '{user,api,system,worker,scheduler}'),
  ('ops.run', 'queued',  'cancelled', 'cancelled', '{user,api,system,worker,scheduler}'),
  ('ops.run', 'claimed', 'expired',   'cancelled', '{system}'),
  ('ops.run', 'running', 'expired',   'cancelled', '{system}')
on conflict (machine, from_state, event) do update set to_state = excluded.to_state, actors = excluded.actors;
