-- Queues a run in place of one that is over: with the sha and ref of `source`, as the environment says now. While an
-- earlier one in its place is not over, that one is returned.
create or replace function ops.again(old ops.run_facts, source ops.run_facts, link text, reason text, actor text)
returns ops.run_facts
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  step holdfast.steps;
  facts ops.run_facts;
begin
  select f.* into facts from ops.run_facts f
   where case again.link when 'retry_of' then f.retry_of = old.run_id else f.rollback_of = old.run_id end
     and f.finished_at is null
   limit 1;
  if found then
    return facts;
  end if;
  select s.* into strict step from holdfast.steps s where s.id = source.step_id;
  return ops.begin_run(
    source.project_id, source.env, source.git_sha, source.git_ref,
    case when jsonb_typeof(step.input -> 'metadata') = 'object' then step.input -> 'metadata' else '{}' end
      || jsonb_strip_nulls(jsonb_build_object(again.link, old.run_id, 'why', again.reason)),
    null, jsonb_build_object('kind', source.kind, 'priority', step.priority, again.link, old.run_id), again.actor,
    source.tenant);
end
$$;
