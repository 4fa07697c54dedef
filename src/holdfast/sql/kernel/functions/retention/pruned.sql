-- Tells what retention has removed: the last move of a step (a number) or a run (a UUID) that is gone and that the
-- journal still has, with when and by which rule it was removed. Both are null if somebody else deleted it. An id that
-- never existed has no row, nor has one of a tenant that the login may not act for.
create or replace function holdfast.pruned(of_id text)
returns table (id text, label text, machine text, state text, outcome text, finished_at timestamptz, run_id uuid,
               pruned_at timestamptz, rule text)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by the journal's indexes, whatever the statistics say
set jit = off
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  last holdfast.journal;
begin
  if pruned.of_id ~ '^[0-9]{1,18}$' then
    select j.* into last from holdfast.journal j
     where j.step_id = pruned.of_id::bigint
       and holdfast.matches_any(allowed, j.tenant)  -- guard: step-tenant
     order by j.id desc limit 1;
    if exists (select from holdfast.steps s
                where s.id = last.step_id
                  and (s.run_id is null or exists (select from holdfast.runs r where r.id = s.run_id))) then
      return;
    end if;
  elsif pruned.of_id ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    select j.* into last from holdfast.journal j
     where j.run_id = pruned.of_id::uuid and j.step_id is null
       and holdfast.matches_any(allowed, j.tenant)  -- guard: run-tenant
     order by j.id desc limit 1;
    if exists (select from holdfast.runs r where r.id = last.run_id) then
      return;
    end if;
  end if;
  return query
  select pruned.of_id, m.label, last.machine, last.to_state, t.outcome, last.at, last.run_id, p.at, p.rule
    from (select) one
    left join holdfast.machines m on m.machine = last.machine
    left join holdfast.machine_states t on t.machine = last.machine and t.state = last.to_state
    left join lateral (
      select g.at, g.rule from holdfast.prunings g
       where case when last.run_id is null
                  then g.span @> last.step_id and last.step_id = any (g.step_ids)
                  else g.span @> holdfast.place_of(last.run_id) and last.run_id = any (g.run_ids) end
       order by g.at desc limit 1) p on true
   where last.id is not null;
end
$$;
grant execute on function holdfast.pruned to hf_producer, hf_worker, hf_reader, hf_operator;
