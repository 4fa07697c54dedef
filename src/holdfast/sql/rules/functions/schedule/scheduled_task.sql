-- Returns what a task that previews a rule by the clock needs: its tenant, the run that an earlier try of it made, and
-- another open run of its rule, which it must not meet. A worker calls it under the lease of the task.
create or replace function rules.scheduled_task(step_id bigint, lease_id bigint)
returns table (tenant text, made uuid, open_run uuid, definition jsonb)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  task constant holdfast.steps := rules.held_task(scheduled_task.step_id, scheduled_task.lease_id);
  wanted constant text := rules.rule_of_tick(task.input);
begin
  return query
  select task.tenant,
         (select k.id::uuid from holdfast.keys k where k.tenant = task.tenant and k.key = 'schedule:' || task.id),
         rules.open_run(wanted, task.input ->> 'channel', task.tenant),
         case when jsonb_typeof(task.input -> 'rule') = 'object' then task.input -> 'rule'
              else (select v.definition from rules.rule_versions v
                     where v.tenant = task.tenant and v.rule_id = wanted and not v.is_draft
                     order by v.version desc limit 1) end;
end
$$;
grant execute on function rules.scheduled_task to hf_worker;
