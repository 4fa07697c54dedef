-- Unparks those of the steps that park_steps or their start parked: each has its due time again. Steps that the kernel
-- parked itself are unparked when the kernel's reason is gone, and those that only their face unparks are refused. A
-- note on each step has the reason and `actor`, the person that the login acts for. Returns the ids of the unparked
-- steps.
create or replace function holdfast.unpark_steps(ids bigint[], reason text default null, actor text default null)
returns setof bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  own record;
begin
  select s.id, s.parked_for, m.unparked_by into own
    from holdfast.steps s join holdfast.machines m on m.machine = s.machine and m.own_parking = s.parked_for
   where s.id = any (unpark_steps.ids) and holdfast.matches_any(allowed, s.tenant)
   order by s.id limit 1;
  if found then  -- guard: face
    perform holdfast.refuse('RN005', format('step %s is parked for %s and cannot be unparked so', own.id,
                                            own.parked_for),
                            format('use %s', own.unparked_by), 'ids');
  end if;
  return query
  select u from holdfast.unpark(unpark_steps.ids, unpark_steps.reason, unpark_steps.actor, is_by_face => false) u;
end
$$;
grant execute on function holdfast.unpark_steps to hf_operator;
