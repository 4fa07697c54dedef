-- Retries a failed step, or all failed steps of a run, with a fresh budget. `actor` names the person that the login acts
-- for. Returns the new state.
create or replace function holdfast.retry(id text, reason text default null, actor text default null)
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return holdfast.act_on(retry.id, 'reopened', retry.reason, actor => retry.actor);
end
$$;
grant execute on function holdfast.retry to hf_operator;
