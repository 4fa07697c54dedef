-- Locks those of the steps that are still due and that nobody has locked, and returns them in their order.
create or replace function holdfast.lock_due(ids bigint[], clock timestamptz)
returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if lock_due.ids = '{}' then
    return lock_due.ids;
  end if;
  return array(
    select s.id
      from holdfast.steps s
     where s.id = any (lock_due.ids)
       and holdfast.is_due(s, lock_due.clock) is true  -- not bare: the planner would use the index of due steps
       for update skip locked);  -- guard: lock
end
$$;
