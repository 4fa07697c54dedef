-- Refuses to adjust a step that is done, and a backoff for one that waits for no retry or that no calendar holds.
create or replace function flow.check_adjustment(step holdfast.steps, waits_again boolean, backoff_request_seconds numeric)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if step.finished_at is not null and step.state <> 'error' then
    perform holdfast.refuse('RN010', format('step %s is %s: nothing of it is tried again', step.id, step.state),
                            'flow.retry_from does a step of a finished task again, in a new task');
  end if;
  if check_adjustment.backoff_request_seconds is not null and not check_adjustment.waits_again then
    perform holdfast.refuse('RN010', format('step %s is %s and waits for no retry', step.id, step.state),
                            'a backoff is set on a step that failed and will be tried again');
  end if;
  if check_adjustment.backoff_request_seconds not between 0 and 3e9 then
    perform holdfast.refuse('RN005', format('a backoff of %s seconds makes no sense', check_adjustment.backoff_request_seconds),
                            'from 0 to a hundred years', 'backoff_request_seconds');
  end if;
end
$$;
