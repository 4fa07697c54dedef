-- Returns the state of a task's steps (`step_ids` of them, or all), and which are ready: those that a claim would take
-- now.
create or replace function flow.get_step_readiness_status(task_id uuid, step_ids bigint[] default null)
returns setof flow.step_readiness
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select b.*
    from flow.get_step_readiness_status_batch(array[get_step_readiness_status.task_id],
                                              get_step_readiness_status.step_ids) b;
end
$$;
grant execute on function flow.get_step_readiness_status to hf_producer, hf_worker, hf_reader, hf_operator;
