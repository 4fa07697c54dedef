insert into holdfast.machines (machine, subject, policy, moved, label) values
  ('toy.list', 'run',  null,       'toy.count_rows', 'list'),
  ('toy.wish', 'step', 'toy.wish', 'toy.count_rows', 'wish')
on conflict (machine) do update set policy = excluded.policy, moved = excluded.moved, label = excluded.label;

insert into holdfast.machine_states (machine, state, phase, outcome, is_initial) values
  ('toy.list', 'hoped',    'open',         null,        true),
  ('toy.list', 'heard',    'held',         null,        false),
  ('toy.list', 'granted',  'over',         'succeeded', false),
  ('toy.list', 'denied',   'over',         'failed',    false),
  ('toy.list', 'halved',   'over',         'partial',   false),
  ('toy.list', 'dropped',  'over',         'cancelled', false),
  ('toy.wish', 'hoped',    'open',         null,        true),
  ('toy.wish', 'heard',    'held',         null,        false),
  ('toy.wish', 'granted',  'over',         'succeeded', false),
  ('toy.wish', 'denied',   'open_or_over', 'failed',    false),
  ('toy.wish', 'dropped',  'over',         'cancelled', false)
on conflict (machine, state) do update
  set phase = excluded.phase, outcome = excluded.outcome, is_initial = excluded.is_initial;

insert into holdfast.machine_moves (machine, from_state, event, to_state, actors) values
  ('toy.list', 'hoped',  'started',        'heard',   '{worker,system,user}'),
  ('toy.list', 'heard',  'all_succeeded',  'granted', '{worker,system,user}'),
  ('toy.list', 'heard',  'some_failed',    'halved',  '{worker,system,user}'),
  ('toy.list', 'heard',  'none_succeeded', 'denied',  '{worker,system,user}'),
  ('toy.list', 'hoped',  'cancelled',      'dropped', '{user,scheduler}'),
  ('toy.list', 'heard',  'cancelled',      'dropped', '{user,scheduler}'),
  ('toy.list', 'denied', 'reopened',       'hoped',   '{user,system}'),
  ('toy.list', 'halved', 'reopened',       'hoped',   '{user,system}'),
  ('toy.wish', 'hoped',  'claimed',        'heard',   '{worker}'),
  ('toy.wish', 'heard',  'succeeded',      'granted', '{worker}'),
  ('toy.wish', 'heard',  'retried',        'denied',  '{worker}'),
  ('toy.wish', 'heard',  'failed',         'denied',  '{worker,system}'),
  ('toy.wish', 'heard',  'released',       'hoped',   '{worker}'),
  ('toy.wish', 'heard',  'expired',        'denied',  '{system}'),
  ('toy.wish', 'hoped',  'cancelled',      'dropped', '{user,system,worker,scheduler}'),
  ('toy.wish', 'heard',  'cancelled',      'dropped', '{user,system,scheduler}'),
  ('toy.wish', 'denied', 'cancelled',      'dropped', '{user,system,worker,scheduler}'),
  ('toy.wish', 'denied', 'reopened',       'hoped',   '{worker,user,system}')
on conflict (machine, from_state, event) do update set to_state = excluded.to_state, actors = excluded.actors;
