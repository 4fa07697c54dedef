-- Marks a step or a run as resolved by a person: steps that wait for it continue, with the given result. `actor` names
-- the person that the login acts for. Returns the new state.
create or replace function holdfast.resolve(
  id text, reason text default null, result jsonb default null, actor text default null)
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return holdfast.act_on(resolve.id, 'resolved', resolve.reason, resolve.result, resolve.actor);
end
$$;
grant execute on function holdfast.resolve to hf_operator;
