-- Returns the part of a pass that a worker holds under its lease. Refuses one whose lease was lost, or that belongs to
-- another tenant than the login's.
create or replace function rules.held_part(step_id bigint, lease_id bigint)
returns rules.pass_parts
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  part rules.pass_parts;
begin
  select p.* into part
    from rules.pass_parts p join holdfast.steps s on s.id = p.step_id
   where p.step_id = held_part.step_id and s.lease_id = held_part.lease_id  -- guard: lease
     and holdfast.matches_any(holdfast.allowed_tenants(), s.tenant);  -- guard: tenant
  if part.step_id is null then
    perform holdfast.refuse('RN002', format('step %s is not held under lease %s', held_part.step_id,
                                            held_part.lease_id), 'leave it to the worker that holds it');
  end if;
  return part;
end
$$;
