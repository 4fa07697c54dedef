-- Row-level security and rights. Runtime roles call functions and read; they write no table.
do $$
declare
  item text;
begin
  foreach item in array array['runs', 'steps', 'journal', 'notes', 'keys', 'resolutions'] loop
    continue when exists (select from pg_catalog.pg_policies p
                           where p.schemaname = 'holdfast' and p.tablename = item and p.policyname = 'kernel_sees_all');
    execute format('create policy kernel_sees_all on holdfast.%I to hf_owner using (true) with check (true)', item);
    continue when item = 'keys';
    -- The subselects are evaluated once per query, not once per row.
    execute format('create policy own_tenants on holdfast.%I for select '
                   'to hf_producer, hf_worker, hf_reader, hf_operator '
                   'using ((select holdfast.allowed_tenants()) is null '
                   'or tenant = any ((select holdfast.allowed_tenants())::text[]))', item);
  end loop;
end
$$;

-- A login that sees a run or a step also sees what belongs to it.
do $$
begin
  if not exists (select from pg_catalog.pg_policies p where p.schemaname = 'holdfast' and p.tablename = 'edges') then
    create policy kernel_sees_all on holdfast.run_steps to hf_owner using (true) with check (true);
    create policy of_own_runs on holdfast.run_steps for select to hf_producer, hf_worker, hf_reader, hf_operator
      using (exists (select from holdfast.runs r where r.id = run_id));
    create policy kernel_sees_all on holdfast.edges to hf_owner using (true) with check (true);
    create policy of_own_steps on holdfast.edges for select to hf_producer, hf_worker, hf_reader, hf_operator
      using (exists (select from holdfast.steps s where s.id = step_id));
  end if;
end
$$;

-- A tenant sees its own definitions, and everybody sees those for all tenants ('*'). A login sees a worker if it may
-- act for each tenant that the worker serves; only logins for all see one that serves all of them (null), or none.
do $$
declare
  item text;
begin
  foreach item in array array['holdfast.kinds', 'holdfast.policies', 'holdfast.workers'] loop
    continue when exists (select from pg_catalog.pg_policy p where p.polrelid = item::regclass);
    execute format('alter table %s enable row level security', item);
    execute format('alter table %s force row level security', item);
    execute format('create policy kernel_sees_all on %s to hf_owner using (true) with check (true)', item);
    execute format('create policy own_tenants on %s for select to hf_producer, hf_worker, hf_reader, hf_operator '
                   'using ((select holdfast.allowed_tenants()) is null or %s)', item,
                   case item when 'holdfast.workers'
                     then 'tenants <> ''{}'' and tenants <@ (select holdfast.allowed_tenants())::text[]'
                     else 'tenant = ''*'' or tenant = any ((select holdfast.allowed_tenants())::text[])' end);
  end loop;
end
$$;

-- Rules are seen as other definitions are. What a limit of all tenants has now may name others' values (tenant:b): a
-- login for some tenants sees those that its own steps are under.
do $$
declare
  item text;
begin
  foreach item in array array['limits', 'limit_states', 'limit_changes'] loop
    continue when exists (select from pg_catalog.pg_policies p
                           where p.schemaname = 'holdfast' and p.tablename = item);
    execute format('alter table holdfast.%I enable row level security', item);
    execute format('alter table holdfast.%I force row level security', item);
    execute format('create policy kernel_sees_all on holdfast.%I to hf_owner using (true) with check (true)', item);
    execute format('create policy own_tenants on holdfast.%I for select to hf_producer, hf_worker, hf_reader, '
                   'hf_operator using ((select holdfast.allowed_tenants()) is null '
                   'or tenant = any ((select holdfast.allowed_tenants())::text[])%s)', item,
                   case item when 'limits' then ' or tenant = ''*'''
                             when 'limit_states' then ' or (tenant = ''*'' and exists (select from holdfast.steps s '
                               'where s.limited_by = limit_states.id))'
                             else '' end);
  end loop;
end
$$;

-- Schedules, their ticks and changes, and the pauses of runs belong to one tenant.
do $$
declare
  item text;
begin
  foreach item in array array['schedules', 'ticks', 'schedule_changes', 'run_changes'] loop
    continue when exists (select from pg_catalog.pg_policies p
                           where p.schemaname = 'holdfast' and p.tablename = item);
    execute format('alter table holdfast.%I enable row level security', item);
    execute format('alter table holdfast.%I force row level security', item);
    execute format('create policy kernel_sees_all on holdfast.%I to hf_owner using (true) with check (true)', item);
    execute format('create policy own_tenants on holdfast.%I for select to hf_producer, hf_worker, hf_reader, '
                   'hf_operator using ((select holdfast.allowed_tenants()) is null '
                   'or tenant = any ((select holdfast.allowed_tenants())::text[]))', item);
  end loop;
end
$$;

-- A tenant sees its own rules of retention and those for all, and how they were changed.
do $$
declare
  item text;
begin
  foreach item in array array['retention_rules', 'retention_changes'] loop
    continue when exists (select from pg_catalog.pg_policies p
                           where p.schemaname = 'holdfast' and p.tablename = item);
    execute format('alter table holdfast.%I enable row level security', item);
    execute format('alter table holdfast.%I force row level security', item);
    execute format('create policy kernel_sees_all on holdfast.%I to hf_owner using (true) with check (true)', item);
    execute format('create policy own_tenants on holdfast.%I for select to hf_producer, hf_worker, hf_reader, '
                   'hf_operator using ((select holdfast.allowed_tenants()) is null or tenant = ''*'' '
                   'or tenant = any ((select holdfast.allowed_tenants())::text[]))', item);
  end loop;
end
$$;

grant usage on schema holdfast to hf_producer, hf_worker, hf_reader, hf_operator;
grant usage on sequence holdfast.step_ids to hf_producer, hf_worker, hf_operator;
grant select on holdfast.runs, holdfast.steps, holdfast.run_steps, holdfast.edges, holdfast.journal,
  holdfast.notes, holdfast.note_keys, holdfast.resolutions,
  holdfast.queues, holdfast.queue_pauses, holdfast.workers,
  holdfast.limits, holdfast.limit_states, holdfast.limit_changes,
  holdfast.schedules, holdfast.ticks, holdfast.schedule_changes,
  holdfast.retention_rules, holdfast.retention_changes, holdfast.run_changes,
  holdfast.kinds, holdfast.policies, holdfast.machines, holdfast.machine_states, holdfast.machine_moves,
    holdfast.migrations, holdfast.installed
  to hf_producer, hf_worker, hf_reader, hf_operator;
