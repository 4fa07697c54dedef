-- A workflow (document 003): a task is a run, and its steps wait for each other. A failed step is in `error`, whether
-- it will be retried (due_at) or not (finished_at); a retry goes through `pending`.
insert into holdfast.machines (machine, subject, policy, label) values
  ('flow.task', 'run',  null,        'run'),
  ('flow.step', 'step', 'flow.step', 'step')
on conflict (machine) do update set policy = excluded.policy, label = excluded.label;

insert into holdfast.machine_states (machine, state, phase, outcome, is_initial) values
  ('flow.task', 'pending',           'open',         null,        true),
  ('flow.task', 'in_progress',       'held',         null,        false),
  ('flow.task', 'complete',          'over',         'succeeded', false),
  ('flow.task', 'error',             'over',         'failed',    false),
  ('flow.task', 'cancelled',         'over',         'cancelled', false),
  ('flow.task', 'resolved_manually', 'over',         'succeeded', false),
  ('flow.step', 'pending',           'open',         null,        true),
  ('flow.step', 'in_progress',       'held',         null,        false),
  ('flow.step', 'complete',          'over',         'succeeded', false),
  ('flow.step', 'error',             'open_or_over', 'failed',    false),
  ('flow.step', 'cancelled',         'over',         'cancelled', false),
  ('flow.step', 'resolved_manually', 'over',         'succeeded', false)
on conflict (machine, state) do update
  set phase = excluded.phase, outcome = excluded.outcome, is_initial = excluded.is_initial;

insert into holdfast.machine_moves (machine, from_state, event, to_state, actors) values
  ('flow.task', 'pending',     'started',        'in_progress',       '{worker,system,user,api}'),
  ('flow.task', 'in_progress', 'all_succeeded',  'complete',          '{worker,system,user,api}'),
  ('flow.task', 'in_progress', 'some_failed',    'error',             '{worker,system,user,api}'),
  ('flow.task', 'in_progress', 'none_succeeded', 'error',             '{worker,system,user,api}'),
  ('flow.task', 'in_progress', 'blocked',        'error',             '{worker,system,user,api}'),
  ('flow.task', 'error',       'reopened',       'pending',           '{user,api,system}'),
  ('flow.task', 'error',       'resolved',       'resolved_manually', '{user,api}'),
  ('flow.task', 'pending',     'cancelled',      'cancelled',         '{user,api,system,scheduler}'),
  ('flow.task', 'in_progress', 'cancelled',      'cancelled',         '{user,api,system,scheduler}'),
  ('flow.step', 'pending',     'claimed',        'in_progress',       '{worker}'),
  ('flow.step', 'in_progress', 'succeeded',      'complete',          '{worker}'),
  ('flow.step', 'in_progress', 'retried',        'error',             '{worker}'),
  ('flow.step', 'in_progress', 'failed',         'error',             '{worker,system}'),
  ('flow.step', 'in_progress', 'expired',        'error',             '{system}'),
  ('flow.step', 'in_progress', 'snoozed',        'pending',           '{worker}'),
  ('flow.step', 'in_progress', 'released',       'pending',           '{worker}'),
  ('flow.step', 'in_progress', 'continued',      'pending',           '{worker}'),
  ('flow.step', 'error',       'reopened',       'pending',           '{worker,user,api,system}'),
  ('flow.step', 'error',       'resolved',       'resolved_manually', '{user,api}'),
  ('flow.step', 'pending',     'resolved',       'resolved_manually', '{user,api}'),
  ('flow.step', 'pending',     'cancelled',      'cancelled',         '{user,api,system,worker,scheduler}'),
  ('flow.step', 'in_progress', 'cancelled',      'cancelled',         '{user,api,system,scheduler}'),
  ('flow.step', 'error',       'cancelled',      'cancelled',         '{user,api,system,worker,scheduler}')
on conflict (machine, from_state, event) do update set to_state = excluded.to_state, actors = excluded.actors;
