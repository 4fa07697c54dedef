-- Lists the runs, with ids above `above` and up to `upto`, that are over for longer than their rule keeps them. A run
-- stays while its steps still move, while one of them is live, and while a run that undoes, checks or retries it is
-- not over.
create or replace function holdfast.expired_runs(above uuid, upto uuid, clock timestamptz)
returns table (run_id uuid, finished_at timestamptz, steps int, tenant text, rule text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by primary key, whatever the statistics say
set jit = off
as $$
begin
  return query
  with ended as materialized (
    select n.id, n.finished_at, n.total, n.tenant, n.machine, t.outcome
      from holdfast.runs n
      join holdfast.machine_states t on t.machine = n.machine and t.state = n.state
     where n.id > expired_runs.above and n.id <= expired_runs.upto
       and n.finished_at is not null
       and n.moving is null and n.live = 0  -- guard: over
  ),
  ruled as materialized (
    select k.tenant, k.machine, k.outcome, expired_runs.clock - r.keep as ended_by, holdfast.rule_text(r) as rule
      from (select distinct e.tenant, e.machine, e.outcome from ended e) k
     cross join lateral holdfast.retention_rule(k.machine, null, k.outcome, k.tenant) r
     where r.keep is not null)
  select e.id, e.finished_at, e.total, e.tenant, r.rule
    from ended e
    join ruled r on r.tenant = e.tenant and r.machine = e.machine and r.outcome = e.outcome
   where e.finished_at <= r.ended_by  -- guard: age
     and not holdfast.is_any_open(array[e.id::text])  -- guard: undoing
   order by e.id;
end
$$;
