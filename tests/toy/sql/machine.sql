insert into holdfast.machines (machine, subject, policy) values ('toy.list', 'run', null), ('toy.wish', 'step', 'toy.wish')
on conflict (machine) do update set policy = excluded.policy;

insert into holdfast.machine_states (machine, state, phase, outcome, is_initial) values
  ('toy.list', 'hoped',    'open', null,        true),
  ('toy.list', 'heard',    'held', null,        false),
  ('toy.list', 'granted',  'over', 'succeeded', false),
  ('toy.list', 'denied',   'over', 'failed',    false),
  ('toy.wish', 'hoped',    'open', null,        true),
  ('toy.wish', 'heard',    'held', null,        false),
  ('toy.wish', 'granted',  'over', 'succeeded', false),
  ('toy.wish', 'denied',   'over', 'failed',    false)
on conflict (machine, state) do update set phase = excluded.phase, outcome = excluded.outcome, is_initial = excluded.is_initial;

insert into holdfast.machine_moves (machine, from_state, event, to_state, actors) values
  ('toy.list', 'hoped', 'started',        'heard',   '{worker,system}'),
  ('toy.list', 'heard', 'all_succeeded',  'granted', '{worker,system}'),
  ('toy.list', 'heard', 'some_failed',    'denied',  '{worker,system}'),
  ('toy.list', 'heard', 'none_succeeded', 'denied',  '{worker,system}'),
  ('toy.wish', 'hoped', 'claimed',        'heard',   '{worker}'),
  ('toy.wish', 'heard', 'succeeded',      'granted', '{worker}'),
  ('toy.wish', 'heard', 'failed',         'denied',  '{worker,system}'),
  ('toy.wish', 'heard', 'released',       'hoped',   '{worker}'),
  ('toy.wish', 'heard', 'expired',        'hoped',   '{system}'),
  ('toy.list', 'denied', 'reopened',      'heard',   '{user}'),
  ('toy.wish', 'denied', 'reopened',      'hoped',   '{user}')
on conflict (machine, from_state, event) do update set to_state = excluded.to_state, actors = excluded.actors;
