-- Counts targets of a run whose try failed: each retry that is scheduled, and each call that met a rate limit. Targets
-- of a call that was throttled as a whole count once: the kernel names the others (holdfast.repeats).
create or replace function rules.count_tries(run_id uuid, step_ids bigint[], is_retry boolean)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  repeats constant bigint[] := coalesce(nullif(current_setting('holdfast.repeats', true), '')::bigint[], '{}');
  retried constant int := case when count_tries.is_retry then cardinality(count_tries.step_ids) else 0 end;
  limited int;
begin
  select count(*) into limited
    from unnest(count_tries.step_ids) u (id)
   cross join lateral (select h.error from holdfast.steps h where h.id = u.id offset 0) s
   where s.error ->> 'class' = 'RATE_LIMIT' and u.id <> all (repeats);  -- guard: call
  if retried + limited > 0 then
    insert into rules.figures as g (tenant, channel, slot, retries, rate_limits)
    select f.tenant, f.channel, pg_backend_pid(), retried, limited
      from rules.run_facts f where f.run_id = count_tries.run_id
    on conflict (tenant, channel, slot) do update
      set retries = g.retries + excluded.retries, rate_limits = g.rate_limits + excluded.rate_limits;
  end if;
end
$$;
