-- Cancels a step or a whole run, held or not. A worker that holds it learns of that from its next renewal or settle. A
-- run is cancelled at once; some of its steps now, the rest by upkeep and by claims that meet them. `actor` names the
-- person that the login acts for. Returns the new state.
create or replace function holdfast.cancel(id text, reason text default null, actor text default null)
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return holdfast.act_on(cancel.id, 'cancelled', cancel.reason, actor => cancel.actor);
end
$$;
grant execute on function holdfast.cancel to hf_producer, hf_operator;
