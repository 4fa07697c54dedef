-- Lists the steps of a run that went with it, as far as the journal still knows them. Shows what the login may act for.
create or replace function holdfast.pruned_steps(of_run uuid)
returns setof bigint
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by the journal's index of steps, whatever the statistics say
set jit = off
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return query
  select distinct j.step_id
    from holdfast.prunings p
   cross join lateral unnest(p.steps) u (own)
   cross join lateral (
     select m.step_id, m.tenant
       from holdfast.journal m
      where m.step_id >= lower(u.own) and m.step_id < upper(u.own) and m.run_id = pruned_steps.of_run) j
   where p.span @> holdfast.place_of(pruned_steps.of_run) and pruned_steps.of_run = any (p.run_ids)
     and holdfast.matches_any(allowed, j.tenant);  -- guard: tenant
end
$$;
grant execute on function holdfast.pruned_steps to hf_producer, hf_worker, hf_reader, hf_operator;
