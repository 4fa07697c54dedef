-- A tenant sees its own rows, and everybody sees the channels for all tenants ('*'). What belongs to a run is seen with
-- the run.
do $$
declare
  item text;
  place text;
begin
  foreach item in array array['rules.rule_versions', 'rules.known_channels', 'rules.channel_uses', 'rules.run_facts',
                              'rules.plans', 'rules.ledger', 'rules.stored_events', 'rules.passes',
                              'rules.figures'] loop
    place := holdfast.face_name(item);
    continue when exists (select from pg_catalog.pg_policy p where p.polrelid = place::regclass);
    execute format('alter table %s enable row level security', place);
    execute format('alter table %s force row level security', place);
    execute format('create policy kernel_sees_all on %s to hf_owner using (true) with check (true)', place);
    execute format('create policy own_tenants on %s for select to hf_producer, hf_worker, hf_reader, hf_operator '
                   'using ((select holdfast.allowed_tenants()) is null '
                   'or tenant = any ((select holdfast.allowed_tenants())::text[])%s)', place,
                   case item when 'rules.known_channels' then ' or tenant = ''*''' else '' end);
  end loop;
  foreach item in array array['rules.target_values', 'rules.refused_items', 'rules.exceptions', 'rules.pass_parts',
                              'rules.findings'] loop
    place := holdfast.face_name(item);
    continue when exists (select from pg_catalog.pg_policy p where p.polrelid = place::regclass);
    execute format('alter table %s enable row level security', place);
    execute format('alter table %s force row level security', place);
    execute format('create policy kernel_sees_all on %s to hf_owner using (true) with check (true)', place);
    execute format('create policy of_own_runs on %s for select to hf_producer, hf_worker, hf_reader, hf_operator '
                   'using (exists (select from holdfast.runs r where r.id = run_id))', place);
  end loop;
  place := holdfast.face_name('rules.target_marks');
  if not exists (select from pg_catalog.pg_policy p where p.polrelid = place::regclass) then
    execute format('alter table %s enable row level security', place);
    execute format('alter table %s force row level security', place);
    execute format('create policy kernel_sees_all on %s to hf_owner using (true) with check (true)', place);
    execute format('create policy of_own_steps on %s for select to hf_producer, hf_worker, hf_reader, hf_operator '
                   'using (exists (select from holdfast.steps s where s.id = step_id))', place);
  end if;
end
$$;
grant select on rules.rule_versions, rules.known_channels, rules.run_facts, rules.plans, rules.ledger,
  rules.stored_events, rules.target_values, rules.refused_items, rules.exceptions, rules.target_marks,
  rules.passes, rules.pass_parts, rules.findings, rules.figures
  to hf_producer, hf_worker, hf_reader, hf_operator;
