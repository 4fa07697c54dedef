-- Removes the facts, artifacts and approvals of runs that retention is about to remove.
create or replace function ops.prune_facts(step_ids bigint[], run_ids uuid[])
returns void
language sql
begin atomic
  delete from ops.run_artifacts a where a.step_id = any (prune_facts.step_ids);
  delete from ops.run_approvals a where a.step_id = any (prune_facts.step_ids);
  delete from ops.run_facts f where f.step_id = any (prune_facts.step_ids);
end;
