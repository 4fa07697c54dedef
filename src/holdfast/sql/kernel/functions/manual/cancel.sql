-- Cancels a step or a whole run, held or not: a worker that has it learns so from its next renewal or settle. A run is
-- cancelled at once; of its steps a chunk now, the rest by upkeep and by the claims that meet them. `actor`
-- names the person that the login acts for. Returns the new state.
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
