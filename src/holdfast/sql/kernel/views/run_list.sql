-- Runs for people; `phase`, `outcome` and `label` as in step_list. `waiting` steps wait for others. `unadmitted` steps
-- wait for the window or for the run to be queued, were left out, or were not tried when the run was stopped; of these
-- `to_admit` are still to be admitted. `halt` is first, paused or stopped.
create or replace view holdfast.run_list with (security_invoker = true) as
select r.id, r.name, r.machine, r.state, r.tenant, r.total, r.live, r.succeeded, r.failed, r.cancelled,
       u.rest - u.unadmitted as waiting,
       r.created_at, r.started_at, r.finished_at, r.of_run, r.moving,
       case when r.finished_at is not null then 'over' when t.phase = 'open_or_over' then 'open'
            else t.phase end as phase,
       case when r.finished_at is not null then t.outcome end as outcome,
       (select m.label from holdfast.machines m where m.machine = r.machine) as label,
       coalesce(r.queued_at, case when t.phase <> 'shut' then r.created_at end) as queued_at, r.window_size, r.to_admit,
       u.unadmitted, r.left_out, r.halt, r.halted_at, r.halted_by, r.halt_reason
  from holdfast.runs r
  left join holdfast.machine_states t on t.machine = r.machine and t.state = r.state
 cross join lateral (
   select e.rest, case when r.window_size is not null or t.phase = 'shut' or r.halt = 'stopped'
                       then e.rest else 0 end as unadmitted
     from (select r.total - r.live - r.succeeded - r.failed - r.cancelled as rest) e) u
 where coalesce(r.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select on holdfast.run_list to hf_producer, hf_worker, hf_reader, hf_operator;
