-- Removes the face's rows about steps and runs that retention is about to remove. The values of a run's targets go with
-- its steps, in the same chunks.
create or replace function rules.prune_facts(step_ids bigint[], run_ids uuid[])
returns void
language sql
begin atomic
  delete from rules.target_values v where v.step_id = any (prune_facts.step_ids);
  delete from rules.target_marks m where m.step_id = any (prune_facts.step_ids);
  delete from rules.pass_parts a where a.step_id = any (prune_facts.step_ids);
  delete from rules.findings x where x.pass_id = any (prune_facts.run_ids) or x.run_id = any (prune_facts.run_ids);
  delete from rules.passes a where a.pass_id = any (prune_facts.run_ids) or a.run_id = any (prune_facts.run_ids);
  delete from rules.refused_items x where x.run_id = any (prune_facts.run_ids);
  delete from rules.exceptions e where e.run_id = any (prune_facts.run_ids);
  delete from rules.plans p where p.run_id = any (prune_facts.run_ids);
  delete from rules.run_facts f where f.run_id = any (prune_facts.run_ids);
end;
