-- Queues a previewed run as the actor scheduler. Raises if its items are in another open run.
create or replace function rules.queue_as_scheduler(run_id uuid, reason text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update rules.run_facts f set selection = '{}' where f.run_id = queue_as_scheduler.run_id;
  perform holdfast.set_actor('scheduler', 'scheduler', queue_as_scheduler.reason);
  perform holdfast.begin_admission(queue_as_scheduler.run_id, null);
  perform holdfast.set_actor();
end
$$;
