-- Removes the facts, artifacts and approvals of runs that retention is about to remove, and keeps which step had which
-- id.
create or replace function ops.prune_facts(step_ids bigint[], run_ids uuid[])
returns void
language sql
begin atomic
  insert into ops.pruned_runs (run_id, step_id, tenant, pruned_at)
  select f.run_id, f.step_id, f.tenant, holdfast.clock()
    from ops.run_facts f
   where f.step_id = any (prune_facts.step_ids)
  on conflict do nothing;
  delete from ops.run_artifacts a where a.step_id = any (prune_facts.step_ids);
  delete from ops.run_approvals a where a.step_id = any (prune_facts.step_ids);
  delete from ops.run_facts f where f.step_id = any (prune_facts.step_ids);
end;
