-- Refuses a change by hand after which a step that is not over has used up the tries of its policy: the next failure
-- would be its last, and the step would not be told from one that the engine forgot to end.
create or replace function holdfast.check_budget_by_hand(step holdfast.steps)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  tries constant int := (select p.tries from holdfast.step_policy(step.policy, step.kind, step.machine, step.tenant) p);
begin
  if step.finished_at is null and step.failures >= tries then  -- guard: budget
    perform holdfast.refuse('RN001', format('%s %s cannot be %s after %s failures: its policy has %s tries',
                                            step.machine, step.id, step.state, step.failures, tries),
                            format('set failures to at most %s', tries - 1));
  end if;
end
$$;
