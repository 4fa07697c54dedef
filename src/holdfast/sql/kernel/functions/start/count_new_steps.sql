-- Adds new steps to their run's counts, records their queues and wakes workers that sleep there. Of a run with a window
-- it admits the first lot.
create or replace function holdfast.count_new_steps(run_id uuid, ids bigint[], clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set jit = off
as $$
declare
  queues text[];
  priorities int[];
  free int;
  dependent int;
  has_window constant boolean := (select r.window_size is not null or r.queued_at is null
                                    from holdfast.runs r where r.id = count_new_steps.run_id);
begin
  select array_agg(q.queue), array_agg(q.priority::int) into queues, priorities
    from (select s.queue, max(s.priority) as priority from holdfast.steps s
           where s.id = any (count_new_steps.ids) group by s.queue) q;
  perform holdfast.remember_queues(queues, priorities);
  if has_window then
    select count(*) filter (where s.waits = 0), count(*) filter (where s.waits > 0) into free, dependent
      from holdfast.steps s where s.id = any (count_new_steps.ids);
    perform holdfast.add_to_window(
      count_new_steps.run_id, free, dependent, (select min(u.id) from unnest(count_new_steps.ids) u (id)));
  end if;
  perform holdfast.tally_runs(
    array(select (count_new_steps.run_id, count(*)::int, (count(*) filter (where s.due_at is not null))::int, 0,
                  0, 0)::holdfast.run_delta
            from holdfast.steps s where s.id = any (count_new_steps.ids)),
    count_new_steps.clock, count_new_steps.ids);
  if has_window then
    perform holdfast.admit_first_lot(count_new_steps.run_id, count_new_steps.clock);
  end if;
  perform holdfast.wake(queues);
end
$$;
