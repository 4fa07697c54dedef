-- Lists what would keep a large run from going on, or end it too early; part of holdfast.violations().
create or replace function holdfast.window_violations()
returns table (invariant text, subject text, detail text)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  with free as (
    select r.id, count(*) filter (where holdfast.is_unadmitted(s)) as unadmitted,
           count(*) filter (where holdfast.is_unadmitted(s) and s.id <= r.admitted_until) as passed,
           count(*) filter (where s.finished_at is not null and t.outcome = 'failed') as failed
      from holdfast.runs r
      join holdfast.run_steps n on n.run_id = r.id
      join holdfast.steps s on s.id = n.step_id
      left join holdfast.machine_states t on t.machine = s.machine and t.state = s.state
     where r.window_size is not null
     group by r.id)
  select 'window_admits_what_there_is', 'run ' || r.id,
         format('%s to admit, but %s are not admitted and %s failed', r.to_admit, f.unadmitted, f.failed)
    from holdfast.runs r join free f on f.id = r.id
   where r.to_admit > f.unadmitted + case when r.admits = 'untried' then 0 else f.failed end
  union all
  select 'window_leaves_no_step_behind', 'run ' || r.id,
         format('%s steps up to %s are not admitted', f.passed, r.admitted_until)
    from holdfast.runs r join free f on f.id = r.id join holdfast.machines c on c.machine = r.machine
   where f.passed > 0 and r.to_admit > 0 and r.admits <> 'chosen' and c.admits is null and r.finished_at is null
  union all
  select 'last_lot_is_admitted', 'run ' || r.id, format('nothing to admit, but %s steps are not admitted', f.unadmitted)
    from holdfast.runs r join free f on f.id = r.id
   where r.finished_at is null and r.queued_at is not null and r.to_admit = 0 and r.halt is distinct from 'stopped'
     and r.moving is null and r.admits = 'untried' and f.unadmitted > r.left_out
  union all
  select 'window_is_not_exceeded', 'run ' || r.id, format('%s live steps, a window of %s', r.live, r.window_size)
    from holdfast.runs r
   where r.live > r.window_size + coalesce((select max(k.batch) from holdfast.kinds k), 0)
     and r.dependent = 0 and r.to_admit > 0 and r.admits = 'untried'
  union all
  select 'run_that_is_over_admits_none', 'run ' || r.id, format('%s, but %s to admit', r.state, r.to_admit)
    from holdfast.runs r where r.finished_at is not null and r.to_admit > 0
  union all
  select 'stopped_run_has_no_due_steps', 'step ' || s.id, format('run %s is stopped', r.id)
    from holdfast.runs r
    join holdfast.run_steps n on n.run_id = r.id
    join holdfast.steps s on s.id = n.step_id
   where r.halt = 'stopped' and r.moving is null and coalesce(s.due_at, s.parked_due_at) is not null
  union all
  select 'parked_while_its_run_is_paused', 'step ' || s.id, 'its run is not paused'
    from holdfast.steps s left join holdfast.runs r on r.id = s.run_id
   where starts_with(s.parked_for, 'run ') and r.halt is distinct from 'paused' and r.moving is null
  union all
  select 'times_follow_each_other', 'run ' || r.id,
         format('queued %s, started %s, finished %s', r.queued_at, r.started_at, r.finished_at)
    from holdfast.runs r
   where r.queued_at > r.started_at or r.started_at > r.finished_at or r.queued_at > r.finished_at
$$;
