-- Undoes the run that a task of rules:revert names, and returns what became of it. `rollback_id` is the run that
-- restores what was there before, and `done` says why there is none. `waits` says what is in the way, and `waits_for`
-- names the run if it is one: an open run is stopped first, and unknown outcomes are read first (`unknown` is their
-- number). Repeat the call then. A worker calls it under the lease of the task; what it has planned before is not
-- planned again.
create or replace function rules.revert(step_id bigint, lease_id bigint)
returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  task constant holdfast.steps := rules.held_task(revert.step_id, revert.lease_id);
  reason constant text := coalesce(task.input ->> 'reason', 'its time has come');
  facts rules.run_facts;
  run holdfast.runs;
  made uuid;
  unknown int;
begin
  select f.* into facts from rules.run_facts f
   where f.run_id = (task.input ->> 'run_id')::uuid and f.tenant = task.tenant;
  if facts.run_id is null then
    return jsonb_build_object('done', 'the run is no longer there');
  end if;
  perform rules.lock_run(facts);
  select r.* into strict run from holdfast.runs r where r.id = facts.run_id;
  select f.* into strict facts from rules.run_facts f where f.run_id = run.id;
  select o.run_id into made from rules.run_facts o
   where o.undoes = run.id and o.metadata ->> 'task' = task.id::text;  -- guard: once
  if made is not null then
    return jsonb_build_object('rollback_id', made);
  end if;
  if facts.is_open then
    if run.halt is distinct from 'stopped' and not facts.is_settling then
      perform holdfast.halt_run(run.id, 'stopped', reason, 'scheduler');
    end if;
    return jsonb_build_object('waits', format('run %s is being stopped', run.id), 'waits_for', run.id);
  end if;
  unknown := rules.count_unknown(run.id);
  if run.state in ('PREVIEW', 'ROLLED_BACK') or (run.succeeded <= facts.rolled_back and unknown = 0) then
    return jsonb_build_object('done', format('run %s is %s: nothing is applied', run.id, run.state));
  end if;
  if unknown > 0 and not exists (select from rules.run_facts o where o.undoes = run.id and o.is_open) then
    return jsonb_build_object('waits', 'outcomes are unknown',
                              'unknown', rules.settle_unknown(facts, reason, 'scheduler'));
  end if;
  return rules.plan_revert(facts, task.id, reason);
end
$$;
grant execute on function rules.revert to hf_worker;
