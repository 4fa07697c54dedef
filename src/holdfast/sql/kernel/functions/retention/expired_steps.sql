-- Lists the steps without a run, with ids above `above` and up to `upto`, that are over for longer than their rule
-- keeps them. Each rule is looked up once per combination of tenant, machine, queue and outcome, not once per step.
create or replace function holdfast.expired_steps(above bigint, upto bigint, clock timestamptz)
returns table (step_id bigint, finished_at timestamptz, tenant text, rule text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by primary key, whatever the statistics say
set jit = off
as $$
begin
  return query
  with ended as materialized (
    select s.id, s.finished_at, s.tenant, s.machine, s.queue, t.outcome
      from holdfast.steps s
      join holdfast.machine_states t on t.machine = s.machine and t.state = s.state
     where s.id > expired_steps.above and s.id <= expired_steps.upto
       and s.run_id is null
       and s.finished_at is not null),
  ruled as materialized (
    select k.tenant, k.machine, k.queue, k.outcome, expired_steps.clock - r.keep as ended_by,
           holdfast.rule_text(r) as rule
      from (select distinct e.tenant, e.machine, e.queue, e.outcome from ended e) k
     cross join lateral holdfast.retention_rule(k.machine, k.queue, k.outcome, k.tenant) r
     where r.keep is not null)
  select e.id, e.finished_at, e.tenant, r.rule
    from ended e
    join ruled r on r.tenant = e.tenant and r.machine = e.machine and r.queue = e.queue and r.outcome = e.outcome
   where e.finished_at <= r.ended_by  -- guard: age
   order by e.id;
end
$$;
