-- Retries a failed run by the number of its step, as the dead letter does: queues a new run in its place. Returns what
-- became of it.
create or replace function ops.retry_step(id text, reason text default null)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return (select 'retried by ' || r.run_id from ops.retry_run(retry_step.id, retry_step.reason) r);
end
$$;
grant execute on function ops.retry_step to hf_producer, hf_operator;
