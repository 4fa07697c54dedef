-- Stops the runs of targets that a worker holds, because the channel refuses it or is set up wrongly: every other
-- target would fail too. What was not sent keeps its state. Returns the runs. A worker calls it before it settles the
-- targets, so that a worker that dies in between leaves a stopped run behind and not one that goes on.
create or replace function rules.stop_failing(step_ids bigint[], lease_ids bigint[], reason text)
returns setof uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  held record;
begin
  for held in
    select s.run_id, min(s.lease_owner) as worker
      from unnest(stop_failing.step_ids, stop_failing.lease_ids) u (step_id, lease_id)
     cross join lateral (select h.run_id, h.lease_owner, h.tenant from holdfast.steps h
                          where h.id = u.step_id
                            and h.lease_id = u.lease_id  -- guard: lease
                            and h.machine = 'rules.target' offset 0) s
     where holdfast.matches_any(allowed, s.tenant) and s.run_id is not null
     group by s.run_id
     order by s.run_id
  loop
    continue when exists (select from holdfast.runs r where r.id = held.run_id and r.finished_at is not null);
    perform holdfast.halt_run(held.run_id, 'stopped', left(stop_failing.reason, 1000), held.worker);
    return next held.run_id;
  end loop;
end
$$;
grant execute on function rules.stop_failing to hf_worker;
