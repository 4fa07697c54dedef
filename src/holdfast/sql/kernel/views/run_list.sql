-- Runs for people; `phase`, `outcome` and `label` as in step_list.
create or replace view holdfast.run_list with (security_invoker = true) as
select r.id, r.name, r.machine, r.state, r.tenant, r.total, r.live, r.succeeded, r.failed, r.cancelled,
       r.total - r.live - r.succeeded - r.failed - r.cancelled as waiting,
       r.created_at, r.started_at, r.finished_at, r.of_run, r.moving,
       case when r.finished_at is not null then 'over' when t.phase = 'open_or_over' then 'open'
            else t.phase end as phase,
       case when r.finished_at is not null then t.outcome end as outcome,
       (select m.label from holdfast.machines m where m.machine = r.machine) as label
  from holdfast.runs r
  left join holdfast.machine_states t on t.machine = r.machine and t.state = r.state
 where coalesce(r.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select on holdfast.run_list to hf_producer, hf_worker, hf_reader, hf_operator;
