-- Marks failed targets of a run as dealt with by a person: they keep their state and leave the dead letter. Returns the
-- ids that were marked. Ids of other runs are refused, and nothing is marked. `actor` names the person that the login
-- acts for.
create or replace function rules.resolve(
  run_id uuid, targets bigint[], reason text default null, actor text default null)
returns setof bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  facts constant rules.run_facts := rules.facts_to_change(resolve.run_id);
  step holdfast.steps;
begin
  perform holdfast.check_reason(resolve.reason);
  perform holdfast.check_name('actor', resolve.actor);
  perform rules.refuse_stray(facts, resolve.targets, 'targets');
  for step in
    select s.* from holdfast.steps s
     where s.id = any (resolve.targets) and s.run_id = facts.run_id order by s.id for update
  loop
    if holdfast.mark_resolved(step, resolve.reason, coalesce(resolve.actor, session_user)) then
      return next step.id;
    end if;
  end loop;
end
$$;
grant execute on function rules.resolve to hf_operator;
