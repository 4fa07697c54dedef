-- Locks those of the steps that are due or parked, then the limits that they are parked on, and returns the steps. Who
-- changes such steps after having locked their run's row calls it first: claims and settles lock steps, then limits,
-- then runs.
create or replace function holdfast.lock_admitted(ids bigint[])
returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  locked constant bigint[] := array(
    select s.id from holdfast.steps s
     where s.id = any (lock_admitted.ids) and coalesce(s.due_at, s.parked_due_at) is not null
     order by s.id for update);
begin
  perform from holdfast.limit_states t
    where t.id = any (array(select distinct s.limited_by from holdfast.steps s
                             where s.id = any (locked) and s.limited_by is not null))
    order by t.id for update;
  return locked;
end
$$;
