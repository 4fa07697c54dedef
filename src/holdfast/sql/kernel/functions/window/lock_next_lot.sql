-- Locks the steps that the next lot of a run may take, at most `most`, in the order of their ids. It is called by those
-- who admit a lot while they have the run's row locked, because steps are locked before runs. The caller has the run's
-- lock (run_lock).
create or replace function holdfast.lock_next_lot(run_id uuid, most int default null)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  run holdfast.runs;
  room int;
  ids bigint[];
begin
  select r.* into run from holdfast.runs r where r.id = lock_next_lot.run_id;
  room := least(coalesce(run.window_size, 5000) - run.live, lock_next_lot.most);
  if room > 0 then
    room := room + (select coalesce(max(k.batch), 0) from holdfast.kinds k);  -- a lot ends between two keys
    ids := holdfast.next_to_admit(run, run.admitted_until, room);  -- not in the predicate: it would be called per step
    perform from holdfast.steps s where s.id = any (ids) order by s.id for update;
  end if;
end
$$;
