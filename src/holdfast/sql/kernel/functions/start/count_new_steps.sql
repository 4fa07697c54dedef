-- Adds new steps to their run's counts, records their queues and wakes workers that sleep there.
create or replace function holdfast.count_new_steps(run_id uuid, ids bigint[], clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  queues text[];
  priorities int[];
begin
  select array_agg(q.queue), array_agg(q.priority::int) into queues, priorities
    from (select s.queue, max(s.priority) as priority from holdfast.steps s
           where s.id = any (count_new_steps.ids) group by s.queue) q;
  perform holdfast.remember_queues(queues, priorities);
  perform holdfast.tally_runs(
    array(select (count_new_steps.run_id, count(*)::int, (count(*) filter (where s.due_at is not null))::int, 0,
                  0, 0)::holdfast.run_delta
            from holdfast.steps s where s.id = any (count_new_steps.ids)),
    count_new_steps.clock);
  perform holdfast.wake(queues);
end
$$;
