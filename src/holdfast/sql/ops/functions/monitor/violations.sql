-- Lists what is wrong with runs; part of holdfast.violations().
create or replace function ops.violations()
returns table (invariant text, subject text, detail text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'run_has_facts', 'step ' || s.id, 'it is a run, but ops.run_facts has no row of it'
    from holdfast.steps s
   where s.machine = 'ops.run' and not exists (select from ops.run_facts f where f.step_id = s.id)
  union all
  select 'facts_have_a_run', f.run_id, format('there is no step %s', f.step_id)
    from ops.run_facts f
   where not exists (select from holdfast.steps s where s.id = f.step_id)
  union all
  select 'facts_agree_with_the_run', f.run_id, format('its step is %s, its facts say %s', s.state, f.status)
    from ops.run_facts f join holdfast.steps s on s.id = f.step_id
   where f.status <> s.state or (f.finished_at is null) <> (s.finished_at is null) or f.tenant <> s.tenant
      or (s.lease_owner is not null and f.claimed_by is distinct from s.lease_owner)
  union all
  select 'queued_is_unclaimed', f.run_id, format('queued, but claimed_by %s, started_at %s, finished_at %s',
                                                 f.claimed_by, f.started_at, f.finished_at)
    from ops.run_facts f
   where f.status = 'queued' and num_nonnulls(f.claimed_by, f.started_at, f.finished_at) > 0
  union all
  select 'finished_is_over', f.run_id, format('%s, finished_at %s', f.status, f.finished_at)
    from ops.run_facts f
   where (f.finished_at is null) <> (f.status in ('queued', 'claimed', 'running'))
  union all
  select 'claimed_has_a_worker', f.run_id, format('%s, claimed_by %s, started_at %s', f.status, f.claimed_by,
                                                  f.started_at)
    from ops.run_facts f
   where (f.claimed_by is null) <> (f.started_at is null)
      or (f.claimed_by is null and f.status not in ('queued', 'cancelled'))
  union all
  select 'times_in_order', f.run_id, format('queued %s, started %s, running %s, finished %s', f.queued_at, f.started_at,
                                            f.running_at, f.finished_at)
    from ops.run_facts f
   where f.queued_at > f.started_at or f.started_at > f.running_at
      or coalesce(f.running_at, f.started_at, f.queued_at) > f.finished_at
  union all
  select 'waiting_has_an_approval', f.run_id, 'it waits for an approval that nobody can give'
    from holdfast.steps s join ops.run_facts f on f.step_id = s.id
   where s.machine = 'ops.run' and s.parked_for = 'approval'
     and not exists (select from ops.run_approvals a where a.step_id = s.id and a.decision is null)
  union all
  select 'approval_has_a_waiting_run', f.run_id, format('%s, but its approval is pending', f.status)
    from ops.run_approvals a join ops.run_facts f on f.step_id = a.step_id join holdfast.steps s on s.id = a.step_id
   where a.decision is null and s.parked_for is distinct from 'approval'
$$;
