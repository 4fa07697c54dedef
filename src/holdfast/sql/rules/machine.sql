-- A rule run and its targets (document 000). The document's actors may make its moves, and `system` where the kernel
-- does. A run becomes QUEUED when it is applied; its targets follow as they are admitted. A pass of reconciliation and
-- its pages have machines of their own. Producers preview and operators do the rest, so only these halt a run.
insert into holdfast.machines (machine, subject, policy, moved, moved_by, label, window_size, admits,
                               counts_admitted, halted_by) values
  ('rules.run', 'run', null, 'rules.record_runs', null, 'run', 1000, 'rules.next_targets', 'rules.count_targets',
   'hf_operator'),
  ('rules.target', 'step', 'rules.target', 'rules.record_targets',
   '{created,succeeded,failed,retried,expired,reopened,rolled_back}', 'target', null, null, null, null),
  ('rules.reconcile', 'run', null, 'rules.record_passes', null, 'pass', null, null, null, 'hf_operator'),
  ('rules.check', 'step', 'rules.target', null, null, 'page', null, null, null, null)
on conflict (machine) do update
  set policy = excluded.policy, moved = excluded.moved, moved_by = excluded.moved_by, label = excluded.label,
      window_size = excluded.window_size, admits = excluded.admits, counts_admitted = excluded.counts_admitted,
      halted_by = excluded.halted_by;

insert into holdfast.machine_states (machine, state, phase, outcome, is_initial) values
  ('rules.run',    'PREVIEW',     'shut', null,        true),
  ('rules.run',    'QUEUED',      'open', null,        false),
  ('rules.run',    'APPLYING',    'held', null,        false),
  ('rules.run',    'APPLIED',     'over', 'succeeded', false),
  ('rules.run',    'PARTIAL',     'over', 'partial',   false),
  ('rules.run',    'FAILED',      'over', 'failed',    false),
  ('rules.run',    'ROLLED_BACK', 'over', 'undone',    false),
  ('rules.target', 'PREVIEW',     'shut', null,        true),
  ('rules.target', 'QUEUED',      'open', null,        false),
  ('rules.target', 'APPLYING',    'held', null,        false),
  ('rules.target', 'APPLIED',     'over', 'succeeded', false),
  ('rules.target', 'FAILED',      'over', 'failed',    false),
  ('rules.target', 'ROLLED_BACK', 'over', 'undone',    false),
  ('rules.reconcile', 'pending',   'open', null,        true),
  ('rules.reconcile', 'running',   'held', null,        false),
  ('rules.reconcile', 'done',      'over', 'succeeded', false),
  ('rules.reconcile', 'failed',    'over', 'failed',    false),
  ('rules.reconcile', 'cancelled', 'over', 'cancelled', false),
  ('rules.check',     'pending',   'open', null,        true),
  ('rules.check',     'running',   'held', null,        false),
  ('rules.check',     'done',      'over', 'succeeded', false),
  ('rules.check',     'failed',    'over', 'failed',    false),
  ('rules.check',     'cancelled', 'over', 'cancelled', false)
on conflict (machine, state) do update
  set phase = excluded.phase, outcome = excluded.outcome, is_initial = excluded.is_initial;

insert into holdfast.machine_moves (machine, from_state, event, to_state, actors) values
  ('rules.run',    'PREVIEW',  'queued',         'QUEUED',      '{api,scheduler}'),
  ('rules.run',    'QUEUED',   'started',        'APPLYING',    '{worker,system}'),
  ('rules.run',    'APPLYING', 'all_succeeded',  'APPLIED',     '{worker,system}'),
  ('rules.run',    'APPLYING', 'some_failed',    'PARTIAL',     '{worker,system}'),
  ('rules.run',    'APPLYING', 'none_succeeded', 'FAILED',      '{worker,system}'),
  ('rules.run',    'PARTIAL',  'reopened',       'APPLYING',    '{api,user,system}'),
  ('rules.run',    'FAILED',   'reopened',       'APPLYING',    '{api,user,system}'),
  ('rules.run',    'APPLIED',  'rolled_back',    'ROLLED_BACK', '{api,user,system}'),
  ('rules.run',    'PARTIAL',  'rolled_back',    'ROLLED_BACK', '{api,user,system}'),
  ('rules.target', 'PREVIEW',  'queued',         'QUEUED',      '{api,scheduler,system}'),
  ('rules.target', 'QUEUED',   'claimed',        'APPLYING',    '{worker}'),
  ('rules.target', 'APPLYING', 'succeeded',      'APPLIED',     '{worker}'),
  ('rules.target', 'APPLYING', 'retried',        'QUEUED',      '{worker}'),
  ('rules.target', 'APPLYING', 'snoozed',        'QUEUED',      '{worker}'),
  ('rules.target', 'APPLYING', 'released',       'QUEUED',      '{worker}'),
  ('rules.target', 'APPLYING', 'expired',        'QUEUED',      '{system}'),
  ('rules.target', 'APPLYING', 'failed',         'FAILED',      '{worker,system}'),
  ('rules.target', 'FAILED',   'reopened',       'QUEUED',      '{api,user,system}'),
  ('rules.target', 'APPLIED',  'rolled_back',    'ROLLED_BACK', '{api,user,system}'),
  ('rules.reconcile', 'pending', 'started',        'running',   '{worker,system,user,api}'),
  ('rules.reconcile', 'running', 'all_succeeded',  'done',      '{worker,system,user,api}'),
  ('rules.reconcile', 'running', 'some_failed',    'failed',    '{worker,system,user,api}'),
  ('rules.reconcile', 'running', 'none_succeeded', 'failed',    '{worker,system,user,api}'),
  ('rules.reconcile', 'running', 'blocked',        'failed',    '{worker,system,user,api}'),
  ('rules.reconcile', 'failed',  'reopened',       'running',   '{user,api,system}'),
  ('rules.reconcile', 'pending', 'cancelled',      'cancelled', '{user,api,system}'),
  ('rules.reconcile', 'running', 'cancelled',      'cancelled', '{user,api,system}'),
  ('rules.check',     'pending', 'claimed',        'running',   '{worker}'),
  ('rules.check',     'running', 'continued',      'pending',   '{worker}'),
  ('rules.check',     'running', 'succeeded',      'done',      '{worker}'),
  ('rules.check',     'running', 'retried',        'pending',   '{worker}'),
  ('rules.check',     'running', 'snoozed',        'pending',   '{worker}'),
  ('rules.check',     'running', 'released',       'pending',   '{worker}'),
  ('rules.check',     'running', 'expired',        'pending',   '{system}'),
  ('rules.check',     'running', 'failed',         'failed',    '{worker,system}'),
  ('rules.check',     'failed',  'reopened',       'pending',   '{user,api,system}'),
  ('rules.check',     'pending', 'cancelled',      'cancelled', '{user,api,system}'),
  ('rules.check',     'running', 'cancelled',      'cancelled', '{user,api,system}')
on conflict (machine, from_state, event) do update set to_state = excluded.to_state, actors = excluded.actors;
