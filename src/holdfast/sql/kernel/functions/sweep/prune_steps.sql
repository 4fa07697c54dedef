-- Removes steps without a run whose rule no longer keeps them, among the next `batch` steps after `sweep.step_id`, and
-- returns the sweep's row moved on. Behind the last step that can be old enough (created before `youngest`) the runs
-- are next. A step that somebody has locked, or that was retried meanwhile, stays.
create or replace function holdfast.prune_steps(
  sweep holdfast.retention_sweep, batch int, youngest timestamptz, clock timestamptz)
returns holdfast.retention_sweep
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  last_id bigint;
  seen int;
  oldest timestamptz;
  ids bigint[];
  ends timestamptz[];
  rules text[];
  gone bigint[];
  gone_rules text[];
begin
  select max(w.id), count(*), min(w.created_at) into last_id, seen, oldest
    from (select s.id, s.created_at from holdfast.steps s
           where s.id > sweep.step_id order by s.id limit prune_steps.batch) w;
  if seen = 0 or oldest > prune_steps.youngest or prune_steps.youngest is null then
    sweep.phase := 'runs';
    return sweep;
  end if;
  select array_agg(e.step_id), array_agg(e.finished_at), array_agg(e.rule) into ids, ends, rules
    from holdfast.expired_steps(sweep.step_id, last_id, prune_steps.clock) e;
  -- Ended at another time: it was retried meanwhile, so its end is to be judged anew.
  select array_agg(l.id), array_agg(l.rule) into gone, gone_rules
    from (select s.id, e.rule
            from unnest(ids, ends, rules) e (id, finished_at, rule)
            join holdfast.steps s on s.id = e.id
             and s.finished_at = e.finished_at  -- guard: over
           order by s.id
             for update of s skip locked) l;
  if gone is not null then
    perform holdfast.call_prunes(gone, '{}');
    delete from holdfast.note_keys k where k.step_id = any (gone);
    delete from holdfast.resolutions r where r.step_id = any (gone);
    delete from holdfast.steps s where s.id = any (gone);
    perform holdfast.remember_pruned_steps(gone, gone_rules, prune_steps.clock);
    sweep.steps := sweep.steps + cardinality(gone);
  end if;
  sweep.step_id := last_id;
  return sweep;
end
$$;
