-- Locks those of the runs that ended at the given times and are still over, with all their steps, and returns their
-- ids in order. It never waits: a run is left out if somebody has locked it or one of its steps, such as a retry. Of a
-- large run only the run itself is locked: whoever retries one of its steps has to lock the run too.
create or replace function holdfast.lock_whole_runs(ids uuid[], ends timestamptz[], is_large boolean)
returns uuid[]
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  locked constant uuid[] := array(
    select r.id
      from unnest(lock_whole_runs.ids, lock_whole_runs.ends) e (id, finished_at)
      join holdfast.runs r on r.id = e.id
       and r.finished_at = e.finished_at and r.moving is null and r.live = 0  -- guard: over
     order by r.id
       for update of r skip locked);
  own bigint[];
begin
  if not lock_whole_runs.is_large then
    own := array(select s.id
                   from holdfast.run_steps n join holdfast.steps s on s.id = n.step_id
                  where n.run_id = any (locked)
                    for update of s skip locked);
  end if;
  -- In a statement of its own: it sees what was committed before the runs were locked.
  return array(
    select u.id from unnest(locked) u (id)
     where (lock_whole_runs.is_large
            or not exists (select from holdfast.run_steps n join holdfast.steps s on s.id = n.step_id
                            where n.run_id = u.id
                              and not exists (select from unnest(own) o (id) where o.id = s.id)))
       and not holdfast.is_any_open(array[u.id::text])  -- guard: undoing
     order by u.id);
end
$$;
