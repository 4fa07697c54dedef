-- Cancels runs of these tenants (null: all) that nobody claimed in their time, or whose approval nobody gave in its
-- time. Returns their ids.
create or replace function ops.expire_runs(clock timestamptz, tenants text[])
returns table (run_id text, reason text)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  why text;
  ids bigint[];
begin
  foreach why in array array['Approval expired', 'Run expired in the queue'] loop
    ids := array(
      select s.id from holdfast.steps s
       where s.id = any (case why
               when 'Approval expired' then array(
                 select a.step_id from ops.run_approvals a
                  where a.decision is null and a.expires_at <= expire_runs.clock
                    and holdfast.matches_any(expire_runs.tenants, a.tenant)
                  order by a.expires_at limit 1000)
               else array(
                 select f.step_id from ops.run_facts f
                  where f.status || '' = 'queued' and f.expires_at <= expire_runs.clock
                    and holdfast.matches_any(expire_runs.tenants, f.tenant)
                  order by f.expires_at limit 1000) end)
         and s.state = 'queued'
         and (why <> 'Approval expired' or s.parked_for = 'approval')  -- it may be decided meanwhile
       order by s.id
         for update skip locked);
    continue when ids = '{}';
    if why = 'Approval expired' then
      update ops.run_approvals a
         set decision = 'expired', decided_by = 'system', decided_at = expire_runs.clock, reason = why
       where a.step_id = any (ids) and a.decision is null;
    end if;
    perform holdfast.set_actor('system', 'system', why);
    perform from holdfast.move_steps(array(
      select (u.id, null, 'cancelled', null, null, null, null)::holdfast.step_move from unnest(ids) u (id)));
    perform holdfast.set_actor();
    return query select f.run_id, why from ops.run_facts f where f.step_id = any (ids) order by f.step_id;
  end loop;
end
$$;
