-- Records that the worker of a held step, which the caller has locked, is alive. Fires `started` if the machine
-- distinguishes claimed from running and `is_started`, and extends the lease to its full length once a third of it has
-- passed: otherwise each report would rewrite the hot row.
create or replace function holdfast.report_on(
  step holdfast.steps, lease interval, is_started boolean, clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  running constant text := case when report_on.is_started then (
    select m.to_state from holdfast.machine_moves m
     where m.machine = step.machine and m.from_state = step.state and m.event = 'started') end;
  is_old constant boolean := step.lease_until < report_on.clock + report_on.lease * 2 / 3;  -- guard: third
begin
  if running is not null or is_old then
    perform holdfast.set_actor('worker', step.lease_owner);
    update holdfast.steps s
       set state = coalesce(running, s.state),
           last_event = case when running is not null then 'started' else s.last_event end,
           lease_until = case when is_old then report_on.clock + report_on.lease else s.lease_until end
     where s.id = step.id;
    perform holdfast.set_actor();
  end if;
end
$$;
