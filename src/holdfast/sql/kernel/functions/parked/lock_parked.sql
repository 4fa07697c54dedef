-- Locks those of the steps that are still parked on a limit and that nobody has locked, and returns them in the order
-- of their due times.
create or replace function holdfast.lock_parked(ids bigint[])
returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = on
set jit = off
as $$
begin
  if lock_parked.ids = '{}' then
    return lock_parked.ids;
  end if;
  return array(
    select l.id
      from holdfast.steps l
     where l.id = any (lock_parked.ids)
       and coalesce(l.parked_for, '') = 'limit'  -- not bare: the index of the limits' queues would answer it
     order by l.parked_due_at, l.id
       for update skip locked);
end
$$;
