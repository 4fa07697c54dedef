-- Refuses to adjust a step that is done, a negative limit, and a backoff of more than a hundred years.
create or replace function flow.check_adjustment(step holdfast.steps, retry_limit int, backoff_request_seconds numeric)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if check_adjustment.retry_limit < 0 then
    perform holdfast.refuse('RN005', format('retry_limit must be 0 or more, got %s', check_adjustment.retry_limit),
                            'it counts executions, the first included', 'retry_limit');
  end if;
  if step.finished_at is not null and step.state <> 'error' then
    perform holdfast.refuse('RN010', format('step %s is %s and will not be retried', step.id, step.state),
                            'flow.retry_from does a step of a finished task again, in a new task', step.id::text);
  end if;
  if check_adjustment.backoff_request_seconds not between 0 and 3e9 then
    perform holdfast.refuse(
      'RN005', format('backoff_request_seconds must be 0 to 3e9, got %s', check_adjustment.backoff_request_seconds),
      '3e9 seconds are a hundred years', 'backoff_request_seconds');
  end if;
end
$$;
