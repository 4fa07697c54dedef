-- Of steps that a claim has locked, returns those that it can halt without waiting for a limit: a settle that has the
-- limit locked may be waiting for their run. A later claim halts the others.
create or replace function holdfast.haltable_steps(ids bigint[])
returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  limit_ids constant bigint[] := array(
    select distinct s.limited_by from holdfast.steps s
     where s.id = any (haltable_steps.ids) and s.limited_by is not null);
  free bigint[];
begin
  if limit_ids = '{}' then
    return haltable_steps.ids;
  end if;
  free := array(select t.id from holdfast.limit_states t where t.id = any (limit_ids) order by t.id
                   for update skip locked);
  return array(select s.id from holdfast.steps s
                where s.id = any (haltable_steps.ids) and (s.limited_by is null or s.limited_by = any (free)));
end
$$;
