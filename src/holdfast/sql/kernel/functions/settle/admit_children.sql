-- Subtracts finished parents from the count that their children wait for, and admits children that wait for none any
-- more. Returns the changes to the runs' live counts.
create or replace function holdfast.admit_children(parents bigint[], clock timestamptz)
returns holdfast.run_delta[]
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_hashjoin = off   -- children are locked in the order of their ids
set enable_mergejoin = off
set enable_seqscan = off
set jit = off
as $$
declare
  run_ids uuid[];
  queues text[];
  machines text[];
  freed_ids bigint[];
begin
  with freed as (
    update holdfast.steps s
       set waits = s.waits - c.done,  -- guard: waits
           due_at = case when s.waits = c.done  -- guard: parents
                          and s.finished_at is null then admit_children.clock end
      from (select e.next_id, count(*)::int as done
              from unnest(admit_children.parents) p (id)
             cross join lateral (  -- offset 0: one lookup per parent, whatever the statistics say
               select d.next_id from holdfast.edges d where d.step_id = p.id offset 0) e
             group by e.next_id
             order by e.next_id) c
     where s.id = c.next_id
    returning s.id, s.run_id, s.queue, s.due_at, s.machine)
  select array_agg(f.id), array_agg(f.run_id), array_agg(distinct f.queue), array_agg(distinct f.machine)
    into freed_ids, run_ids, queues, machines
    from freed f
   where f.due_at is not null;
  -- A machine may have a state for steps that are not admitted yet; most do not.
  if exists (select from holdfast.machine_moves m where m.machine = any (machines) and m.event = 'queued') then
    update holdfast.steps s
       set state = m.to_state, last_event = 'queued'
      from holdfast.machine_moves m
     where s.id = any (freed_ids) and m.machine = s.machine and m.from_state = s.state and m.event = 'queued';
  end if;
  if queues is not null then
    perform holdfast.wake(queues);
  end if;
  return array(select (r.id, 0, count(*), 0, 0, 0)::holdfast.run_delta from unnest(run_ids) r (id) group by r.id);
end
$$;
