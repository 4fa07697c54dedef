-- Queues a previewed run as the actor scheduler, and tells whether it did: a run whose items are in another open one,
-- or that is refused otherwise, stays a preview.
create or replace function rules.apply_as_scheduler(run_id uuid, reason text)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform rules.queue_as_scheduler(apply_as_scheduler.run_id, apply_as_scheduler.reason);
  return true;
exception when sqlstate 'RN010' then
  return false;
end
$$;
