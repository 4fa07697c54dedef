-- Lists what is wrong with rule runs and their targets; part of holdfast.violations().
create or replace function rules.violations()
returns table (invariant text, subject text, detail text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with targets as materialized (
    select s.id, s.run_id, s.state, s.failures, s.finished_at, s.tenant, p.tries,
           f.includes_others <> exists (select from rules.exceptions e where e.run_id = s.run_id and e.step_id = s.id)
             as is_included
      from holdfast.steps s
      left join rules.run_facts f on f.run_id = s.run_id
     cross join lateral holdfast.step_policy(s.policy, s.kind, s.machine, s.tenant) p
     where s.machine = 'rules.target'),
  runs as materialized (
    select r.*, f.included, f.is_open, f.includes_others, f.rolled_back, f.is_settling, p.plan, p.plan_hash, p.targets
      from holdfast.runs r
      left join rules.run_facts f on f.run_id = r.id
      left join rules.plans p on p.run_id = r.id
     where r.machine = 'rules.run')
  select 'rule_run_has_a_plan', 'run ' || r.id, format('%s without facts or plan', r.state)
    from runs r where r.included is null or r.plan_hash is null
  union all
  select 'plan_has_its_targets', 'run ' || r.id, format('the plan has %s targets, the run %s', r.targets, r.total)
    from runs r where r.targets <> r.total
  union all
  select 'plan_is_as_hashed', 'run ' || r.id, format('the plan or a target differs from hash %s', r.plan_hash)
    from runs r where rules.plan_digest(r.id, r.plan) <> r.plan_hash
  union all
  select 'rule_run_is_open_as_its_facts_say', 'run ' || r.id, format('%s, is_open %s', r.state, r.is_open)
    from runs r where r.is_open <> (r.state in ('QUEUED', 'APPLYING'))
  union all
  select 'included_is_counted', 'run ' || r.id, format('%s included, counted %s', r.included, c.included)
    from runs r,
         lateral (select count(*) filter (where t.is_included) as included from targets t where t.run_id = r.id) c
   where r.included <> c.included
  union all
  select 'applied_run_has_applied_targets', 'run ' || r.id, format('%s of its targets are not', c.others)
    from runs r,
         lateral (select count(*) as others from targets t
                   where t.run_id = r.id and t.is_included and t.state not in ('APPLIED', 'ROLLED_BACK')) c
   where r.state = 'APPLIED' and c.others > 0
  union all
  select 'rule_run_ends_by_its_targets', 'run ' || r.id,
         format('%s with %s of %s applied', r.state, c.applied, r.included)
    from runs r,
         lateral (select count(*) filter (where t.state in ('APPLIED', 'ROLLED_BACK')) as applied
                    from targets t where t.run_id = r.id) c
   where (r.state = 'FAILED' and c.applied > 0)
      or (r.state = 'PARTIAL' and (c.applied = 0 or c.applied >= r.included))
  union all
  select 'rolled_back_is_counted', 'run ' || r.id, format('%s rolled back, counted %s', r.rolled_back, c.undone)
    from runs r,
         lateral (select count(*) as undone from targets t where t.run_id = r.id and t.state = 'ROLLED_BACK') c
   where r.rolled_back <> c.undone
  union all
  select 'rolled_back_run_has_nothing_applied', 'run ' || r.id, format('%s of its targets are APPLIED', c.applied)
    from runs r,
         lateral (select count(*) as applied from targets t where t.run_id = r.id and t.state = 'APPLIED') c
   where r.state = 'ROLLED_BACK' and c.applied > 0
  union all
  select 'settling_run_is_open', 'run ' || r.id, r.state from runs r where r.is_settling and not r.is_open
  union all
  select 'pass_is_over_as_its_run_is', 'run ' || a.pass_id, format('%s, is_over %s', r.state, a.is_over)
    from rules.passes a join holdfast.runs r on r.id = a.pass_id where a.is_over <> (r.finished_at is not null)
  union all
  select 'rule_run_times_in_order', 'run ' || r.id, format('queued %s, started %s, finished %s', r.queued_at,
                                                             r.started_at, r.finished_at)
    from runs r where r.queued_at > r.started_at or r.started_at > r.finished_at
  union all
  select 'target_has_values', 'step ' || t.id, 'it is a target, but rules.target_values has no row of it'
    from targets t where not exists (select from rules.target_values v where v.step_id = t.id and v.run_id = t.run_id)
  union all
  select 'values_have_a_target', 'step ' || v.step_id, 'there is no such target'
    from rules.target_values v where not exists (select from holdfast.steps s where s.id = v.step_id)
     and exists (select from rules.run_facts f where f.run_id = v.run_id)
  union all
  select 'left_out_is_untouched', 'step ' || t.id, format('%s, but it is not included', t.state)
    from targets t where not t.is_included and t.state <> 'PREVIEW'
  union all
  select 'attempts_are_in_budget', 'step ' || t.id, format('%s after %s failures of %s', t.state, t.failures, t.tries)
    from targets t where t.failures < 0 or (t.failures >= t.tries and t.state <> 'FAILED')
  union all
  select 'applied_has_applied_at', 'step ' || t.id, t.state
    from targets t where t.state = 'APPLIED' and t.finished_at is null
  union all
  select 'applied_is_in_the_ledger', 'step ' || t.id, t.state
    from targets t where t.state in ('APPLIED', 'ROLLED_BACK')
     and not exists (select from rules.ledger l where l.step_id = t.id)
     and t.finished_at > holdfast.clock() - rules.kept_for('ledger')
  union all
  select 'ledger_has_applied_targets', 'step ' || t.id, format('%s, but the ledger has it', t.state)
    from targets t where t.state not in ('APPLIED', 'ROLLED_BACK')
     and exists (select from rules.ledger l where l.step_id = t.id)
  union all
  select 'item_is_in_one_open_run', v.item_id, format('%s open runs of channel %s', count(*), f.channel)
    from runs r
    join rules.run_facts f on f.run_id = r.id
    join rules.target_values v on v.run_id = r.id
   where r.state in ('QUEUED', 'APPLYING')
     and r.includes_others <> exists (select from rules.exceptions e where e.run_id = r.id and e.step_id = v.step_id)
   group by f.tenant, f.channel, v.item_id
  having count(*) > 1;
$$;
