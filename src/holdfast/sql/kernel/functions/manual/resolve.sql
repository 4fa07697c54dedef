-- Says that a person has dealt with a step (or a run): what waits for it goes on, with the result that is given for a step.
-- Gives the new state.
create or replace function holdfast.resolve(id text, reason text default null, result jsonb default null)
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return holdfast.wish(resolve.id, 'resolved', resolve.reason, resolve.result);
end
$$;
grant execute on function holdfast.resolve to hf_operator;
