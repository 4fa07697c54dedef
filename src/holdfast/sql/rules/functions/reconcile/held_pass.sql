-- Returns the pass of a step that a worker holds under its lease. Refuses one whose lease was lost, or that belongs to
-- another tenant than the login's.
create or replace function rules.held_pass(step_id bigint, lease_id bigint)
returns rules.passes
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  pass rules.passes;
begin
  select a.* into pass
    from rules.passes a join holdfast.steps s on s.run_id = a.pass_id
   where s.id = held_pass.step_id and s.lease_id = held_pass.lease_id  -- guard: lease
     and holdfast.matches_any(holdfast.allowed_tenants(), s.tenant);
  if pass.pass_id is null then
    perform holdfast.refuse('RN002', format('step %s is not held under lease %s', held_pass.step_id,
                                            held_pass.lease_id), 'leave it to the worker that holds it');
  end if;
  return pass;
end
$$;
