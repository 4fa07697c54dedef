-- A run of a feed (document 001), its partitions and its consolidation. A run that a person forces or whose
-- consolidation is resumed is queued again; one whose partitions are retried is reopened.
insert into holdfast.machines (machine, subject, policy, closing, moved, label) values
  ('ingest.run', 'run', null, 'ingest.close_run', 'ingest.record_run_moves', 'run'),
  ('ingest.partition', 'step', 'ingest.queue', null, 'ingest.record_partition_moves', 'partition'),
  ('ingest.consolidation', 'step', 'ingest.queue', null, 'ingest.record_consolidation_moves', 'batch')
on conflict (machine) do update set
  policy = excluded.policy, closing = excluded.closing, moved = excluded.moved, label = excluded.label;

insert into holdfast.machine_states (machine, state, phase, outcome, is_initial) values
  ('ingest.run',           'created',                 'open',         null,        true),
  ('ingest.run',           'workers_running',         'held',         null,        false),
  ('ingest.run',           'consolidation_skipped',   'held',         null,        false),
  ('ingest.run',           'consolidation_triggered', 'open',         null,        false),
  ('ingest.run',           'consolidating',           'held',         null,        false),
  ('ingest.run',           'completed',               'over',         'succeeded', false),
  ('ingest.run',           'failed',                  'over',         'failed',    false),
  ('ingest.run',           'cancelled',               'over',         'cancelled', false),
  ('ingest.partition',     'pending',                 'open',         null,        true),
  ('ingest.partition',     'in_progress',             'held',         null,        false),
  ('ingest.partition',     'fetching_pages',          'open_or_held', null,        false),
  ('ingest.partition',     'completed',               'over',         'succeeded', false),
  ('ingest.partition',     'failed',                  'over',         'failed',    false),
  ('ingest.partition',     'cancelled',               'over',         'cancelled', false),
  ('ingest.consolidation', 'pending',                 'open',         null,        true),
  ('ingest.consolidation', 'in_progress',             'held',         null,        false),
  ('ingest.consolidation', 'completed',               'over',         'succeeded', false),
  ('ingest.consolidation', 'failed',                  'over',         'failed',    false),
  ('ingest.consolidation', 'cancelled',               'over',         'cancelled', false)
on conflict (machine, state) do update
  set phase = excluded.phase, outcome = excluded.outcome, is_initial = excluded.is_initial;

insert into holdfast.machine_moves (machine, from_state, event, to_state, actors) values
  ('ingest.run', 'created',                 'started',        'workers_running',         '{worker,system,user,api}'),
  ('ingest.run', 'workers_running',         'all_succeeded',  'consolidation_triggered', '{worker,system,user,api}'),
  ('ingest.run', 'workers_running',         'some_failed',    'consolidation_skipped',   '{worker,system,user,api}'),
  ('ingest.run', 'workers_running',         'blocked',        'failed',                  '{worker,system,user,api}'),
  ('ingest.run', 'consolidation_skipped',   'stopped',        'failed',                  '{worker,system,user,api}'),
  ('ingest.run', 'consolidation_triggered', 'started',        'consolidating',           '{worker,system,user,api}'),
  ('ingest.run', 'consolidating',           'all_succeeded',  'completed',               '{worker,system,user,api}'),
  ('ingest.run', 'consolidating',           'some_failed',    'failed',                  '{worker,system,user,api}'),
  ('ingest.run', 'consolidating',           'blocked',        'failed',                  '{worker,system,user,api}'),
  ('ingest.run', 'failed',                  'reopened',       'workers_running',         '{user,api,system}'),
  ('ingest.run', 'failed',                  'queued',         'consolidation_triggered', '{user,api}'),
  ('ingest.run', 'created',                 'cancelled',      'cancelled',               '{user,api,system,scheduler}'),
  ('ingest.run', 'workers_running',         'cancelled',      'cancelled',               '{user,api,system,scheduler}'),
  ('ingest.run', 'consolidation_triggered', 'cancelled',      'cancelled',               '{user,api,system,scheduler}'),
  ('ingest.run', 'consolidating',           'cancelled',      'cancelled',               '{user,api,system,scheduler}'),
  ('ingest.partition', 'pending',        'claimed',   'in_progress',    '{worker}'),
  ('ingest.partition', 'in_progress',    'started',   'fetching_pages', '{worker,system}'),
  ('ingest.partition', 'in_progress',    'continued', 'fetching_pages', '{worker}'),
  ('ingest.partition', 'in_progress',    'retried',   'pending',        '{worker}'),
  ('ingest.partition', 'in_progress',    'snoozed',   'pending',        '{worker}'),
  ('ingest.partition', 'in_progress',    'released',  'pending',        '{worker}'),
  ('ingest.partition', 'in_progress',    'expired',   'pending',        '{system}'),
  ('ingest.partition', 'fetching_pages', 'claimed',   'fetching_pages', '{worker}'),
  ('ingest.partition', 'fetching_pages', 'continued', 'fetching_pages', '{worker}'),
  ('ingest.partition', 'fetching_pages', 'retried',   'fetching_pages', '{worker}'),
  ('ingest.partition', 'fetching_pages', 'snoozed',   'fetching_pages', '{worker}'),
  ('ingest.partition', 'fetching_pages', 'released',  'fetching_pages', '{worker}'),
  ('ingest.partition', 'fetching_pages', 'expired',   'fetching_pages', '{system}'),
  ('ingest.partition', 'fetching_pages', 'succeeded', 'completed',      '{worker}'),
  ('ingest.partition', 'fetching_pages', 'failed',    'failed',         '{worker,system}'),
  ('ingest.partition', 'failed',         'reopened',  'pending',        '{user,api,system}'),
  ('ingest.partition', 'pending',        'cancelled', 'cancelled',      '{user,api,system,worker,scheduler}'),
  ('ingest.partition', 'in_progress',    'cancelled', 'cancelled',      '{user,api,system,scheduler}'),
  ('ingest.partition', 'fetching_pages', 'cancelled', 'cancelled',      '{user,api,system,worker,scheduler}'),
  ('ingest.consolidation', 'pending',     'claimed',   'in_progress', '{worker}'),
  ('ingest.consolidation', 'in_progress', 'continued', 'pending',     '{worker}'),
  ('ingest.consolidation', 'in_progress', 'retried',   'pending',     '{worker}'),
  ('ingest.consolidation', 'in_progress', 'snoozed',   'pending',     '{worker}'),
  ('ingest.consolidation', 'in_progress', 'released',  'pending',     '{worker}'),
  ('ingest.consolidation', 'in_progress', 'expired',   'pending',     '{system}'),
  ('ingest.consolidation', 'in_progress', 'succeeded', 'completed',   '{worker}'),
  ('ingest.consolidation', 'in_progress', 'failed',    'failed',      '{worker,system}'),
  ('ingest.consolidation', 'pending',     'cancelled', 'cancelled',   '{user,api,system,worker,scheduler}'),
  ('ingest.consolidation', 'in_progress', 'cancelled', 'cancelled',   '{user,api,system,scheduler}'),
  ('ingest.consolidation', 'failed',      'cancelled', 'cancelled',   '{user,api}')
on conflict (machine, from_state, event) do update set to_state = excluded.to_state, actors = excluded.actors;
