-- A tenant sees its own rows, and everybody sees the settings for all tenants ('*').
do $$
declare
  item text;
  place text;
begin
  foreach item in array array['ops.known_projects', 'ops.known_environments', 'ops.settings', 'ops.run_facts',
                              'ops.run_artifacts', 'ops.run_approvals', 'ops.deliveries', 'ops.pruned_runs'] loop
    place := holdfast.face_name(item);
    continue when exists (select from pg_catalog.pg_policy p where p.polrelid = place::regclass);
    execute format('alter table %s enable row level security', place);
    execute format('alter table %s force row level security', place);
    execute format('create policy kernel_sees_all on %s to hf_owner using (true) with check (true)', place);
    execute format('create policy own_tenants on %s for select to hf_producer, hf_worker, hf_reader, hf_operator '
                   'using ((select holdfast.allowed_tenants()) is null '
                   'or tenant = any ((select holdfast.allowed_tenants())::text[])%s)', place,
                   case item when 'ops.settings' then ' or tenant = ''*''' else '' end);
  end loop;
end
$$;
grant select on ops.known_projects, ops.known_environments, ops.settings, ops.run_facts, ops.run_artifacts,
  ops.run_approvals, ops.deliveries
  to hf_producer, hf_worker, hf_reader, hf_operator;
