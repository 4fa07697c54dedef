-- Row-level security and rights. A runtime role calls functions and reads; it writes no table.
do $$
declare
  item text;
begin
  foreach item in array array['runs', 'steps', 'journal', 'notes', 'keys'] loop
    continue when exists (select from pg_catalog.pg_policies p
                           where p.schemaname = 'holdfast' and p.tablename = item and p.policyname = 'kernel_sees_all');
    execute format('create policy kernel_sees_all on holdfast.%I to hf_owner using (true) with check (true)', item);
    continue when item = 'keys';
    -- The subselects are evaluated once a query, not once a row.
    execute format('create policy own_tenants on holdfast.%I for select to hf_producer, hf_worker, hf_reader, hf_operator '
                   'using ((select holdfast.allowed_tenants()) is null or tenant = any ((select holdfast.allowed_tenants())::text[]))', item);
  end loop;
end
$$;

-- What belongs to a run or a step is seen by whoever sees that.
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

-- Definitions are seen by their tenant, and those for all tenants ('*') by everybody. A worker is seen by who may act for each
-- tenant that it serves; one that serves all of them (null), or none, by logins for all.
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
-- Not in the loop: a self-test, which has this table under another name, finds no name of a face in quotes.
alter table flow.definitions enable row level security;
alter table flow.definitions force row level security;
drop policy if exists kernel_sees_all on flow.definitions;
create policy kernel_sees_all on flow.definitions to hf_owner using (true) with check (true);
drop policy if exists own_tenants on flow.definitions;
create policy own_tenants on flow.definitions for select to hf_producer, hf_worker, hf_reader, hf_operator
  using ((select holdfast.allowed_tenants()) is null or tenant = '*'
         or tenant = any ((select holdfast.allowed_tenants())::text[]));

grant usage on schema holdfast, work, flow to hf_producer, hf_worker, hf_reader, hf_operator;
grant usage on sequence holdfast.step_ids to hf_producer, hf_worker, hf_operator;
grant select on holdfast.runs, holdfast.steps, holdfast.run_steps, holdfast.edges, holdfast.journal, holdfast.notes, holdfast.note_keys,
  holdfast.queues, holdfast.workers,
  holdfast.kinds, holdfast.policies, holdfast.machines, holdfast.machine_states, holdfast.machine_moves, holdfast.migrations, holdfast.installed,
  flow.definitions
  to hf_producer, hf_worker, hf_reader, hf_operator;

grant execute on function holdfast.allowed_tenants(), holdfast.clock(), holdfast.chance(), holdfast.partitions_ahead(),
  holdfast.backoff(text, int, double precision), holdfast.is_live(holdfast.steps),
  holdfast.is_due(holdfast.steps, timestamptz), holdfast.policy_of(text, text, text), holdfast.step_policy(text, text, text, text),
  holdfast.step_results(bigint[]), holdfast.live_workers(text, text, text)
  to hf_producer, hf_worker, hf_reader, hf_operator;
grant execute on function
  holdfast.start_task(text, jsonb, text, text, text, timestamptz, int, text), holdfast.start_tasks(jsonb),
  holdfast.start_run(text, text, text, jsonb, jsonb, text, text, uuid), holdfast.stage_steps(), holdfast.reserve_step_ids(int),
  holdfast.take_staged(text, uuid, text)
  to hf_producer, hf_worker, hf_operator;
grant execute on function
  holdfast.claim_steps(text, text, text[], int, interval, text[], text), holdfast.renew_leases(text, bigint[], interval, bigint[]),
  holdfast.settle_steps(jsonb), holdfast.settle_batch(bigint[], bigint[], jsonb[], jsonb), holdfast.rescue_steps(int),
  holdfast.upkeep(int, text, jsonb), holdfast.measured_upkeep(text, jsonb, int, int), holdfast.mark_asleep(text, text), holdfast.retire_worker(text),
  holdfast.enlist_worker(text, text[], text[], text[], jsonb), holdfast.lost_leases(bigint[], bigint[]),
  holdfast.namesakes(text), holdfast.note(bigint, bigint, text, text, jsonb, text)
  to hf_worker;
grant execute on function
  holdfast.define_kind(text, text, text, interval, interval),
  holdfast.define_policy(text, int, interval[], interval, numeric, interval, numeric, interval, text, boolean, boolean)
  to hf_worker, hf_operator;
grant execute on function holdfast.cancel(text, text) to hf_producer, hf_operator;
grant execute on function
  holdfast.retry(text, text), holdfast.resolve(text, text, jsonb), holdfast.pause_queue(text, text), holdfast.resume_queue(text),
  holdfast.violations()
  to hf_operator;
grant execute on function work.claim_next_task(text, text[], text, interval), work.recover_expired_leases(int) to hf_worker;
grant execute on function flow.define_flow(text, jsonb, text, text, text, jsonb) to hf_worker, hf_operator;
grant execute on function
  flow.initialize_task(text, jsonb, jsonb, text, text, text, text, text[], jsonb),
  flow.start_task(text, jsonb, text, text, text, text, text[], jsonb)
  to hf_producer, hf_worker, hf_operator;
grant execute on function flow.step_surroundings(bigint[], bigint[], text[], text[], text[]), flow.result_in_run(uuid, text),
  flow.step_outcomes(uuid, text[]), holdfast.run_results(uuid[])
  to hf_producer, hf_worker, hf_reader, hf_operator;
grant execute on function holdfast.add_awaited(bigint, bigint, jsonb, text[]) to hf_worker;
grant execute on function flow.retry_from(bigint, text) to hf_operator;
grant execute on function
  flow.get_step_readiness_status(uuid, bigint[]), flow.get_step_readiness_status_batch(uuid[], bigint[]),
  flow.get_task_execution_context(uuid), flow.get_task_execution_context_batch(uuid[]), flow.calculate_dependency_levels(uuid),
  flow.get_system_health_counts(), flow.states_from_history(uuid),
  flow.judge_counts(text, bigint, bigint, bigint, bigint, bigint, bigint),
  flow.touched_tasks(text, bigint[]), flow.settled_tasks(text, bigint[]), flow.closed_tasks(text, bigint[])
  to hf_producer, hf_worker, hf_reader, hf_operator;
grant execute on function flow.adjust_step(bigint, int, boolean, numeric), flow.safe_transition_to(anycompatible, text, text) to hf_operator;
