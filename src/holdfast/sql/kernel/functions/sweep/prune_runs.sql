-- Removes whole runs whose rule no longer keeps them, among the next `batch` runs after `sweep.run_id` and with at most
-- `batch` steps together, and returns the sweep's row moved on, as prune_steps does. A larger run goes first, and its
-- steps follow in chunks (prune_rest_of_run): nobody finds half a run.
create or replace function holdfast.prune_runs(
  sweep holdfast.retention_sweep, batch int, youngest timestamptz, clock timestamptz)
returns holdfast.retention_sweep
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  last_id uuid;
  seen int;
  oldest timestamptz;
  found_ids uuid[];
  ends timestamptz[];
  rules text[];
  is_large boolean;
  is_cut boolean;
  ids uuid[];
begin
  select (array_agg(w.id order by w.id desc))[1], count(*), min(w.created_at) into last_id, seen, oldest
    from (select r.id, r.created_at from holdfast.runs r
           where r.id > sweep.run_id order by r.id limit prune_runs.batch) w;
  if seen = 0 or oldest > prune_runs.youngest or prune_runs.youngest is null then
    sweep.phase := 'rest';
    return sweep;
  end if;
  select array_agg(e.run_id), array_agg(e.finished_at), array_agg(e.rule), bool_or(e.steps > prune_runs.batch),
         count(*) < max(e.among)
    into found_ids, ends, rules, is_large, is_cut
    from (select x.*, sum(x.steps) over (order by x.run_id) as so_far, row_number() over (order by x.run_id) as no,
                 count(*) over () as among
            from holdfast.expired_runs(sweep.run_id, last_id, prune_runs.clock) x) e
   where e.so_far <= prune_runs.batch or e.no = 1;
  if found_ids is not null then
    ids := holdfast.lock_whole_runs(found_ids, ends, is_large);
    perform holdfast.call_prunes('{}', ids);
    perform holdfast.remember_pruned_runs(
      ids, array(select e.rule from unnest(found_ids, rules) e (id, rule) where e.id = any (ids) order by e.id),
      prune_runs.clock);
    if is_large then
      sweep.run_left := ids[1];
    else
      sweep.steps := sweep.steps + holdfast.delete_steps_of_runs(ids);
    end if;
    delete from holdfast.run_choices c where c.run_id = any (ids);  -- guard: choices
    delete from holdfast.runs r where r.id = any (ids);
    sweep.runs := sweep.runs + cardinality(ids);
  end if;
  sweep.run_id := case when is_cut then found_ids[cardinality(found_ids)] else last_id end;
  return sweep;
end
$$;
