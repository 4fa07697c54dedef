-- Marks a step or a run as dealt with by a person: what waits for it goes on, with the result that is given for a step.
-- `actor` names the person that the login acts for. Returns the new state.
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
