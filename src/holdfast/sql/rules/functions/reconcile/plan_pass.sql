-- Plans a pass over a run, due at a time: a run of its own with one step per page of its targets and, if it corrects,
-- one after them. Returns its id. Passes of a run are numbered, one at a time. The caller has called set_actor.
create or replace function rules.plan_pass(facts rules.run_facts, pass text, due_at timestamptz, corrects boolean)
returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  new_id constant uuid := holdfast.uuid7();
  place constant text := 'rules:' || facts.channel;
  bounds constant bigint[] := rules.page_bounds(facts.run_id);
  steps jsonb;
begin
  perform rules.lock_passes(facts.run_id);
  insert into rules.passes (run_id, no, pass_id, tenant, channel, pass, due_at, corrects)
  select facts.run_id, coalesce(max(a.no), 0) + 1, new_id, facts.tenant, facts.channel, plan_pass.pass,
         plan_pass.due_at, plan_pass.corrects
    from rules.passes a where a.run_id = facts.run_id;
  steps := (select jsonb_agg(jsonb_build_object(
                     'name', 'page-' || b.no, 'kind', 'reconcile:' || facts.channel, 'queue', place,
                     'limits', jsonb_build_array(place), 'due_at', plan_pass.due_at, 'input', '{}'::jsonb)
                   order by b.no)
              from unnest(bounds) with ordinality b (last, no));
  if plan_pass.corrects then
    steps := steps || jsonb_build_array(jsonb_build_object(
      'name', 'correct', 'kind', 'reconcile:' || facts.channel, 'queue', place,
      'input', '{"correct": true}'::jsonb,
      'after', (select jsonb_agg('page-' || b.no) from generate_series(1, cardinality(bounds)) b (no))));
  end if;
  perform holdfast.make_run(new_id, 'rules.reconcile', facts.rule_id, 'rules.check', steps, '{}', facts.tenant,
                            facts.run_id);
  insert into rules.pass_parts (step_id, pass_id, run_id, after, last)
  select n.step_id, new_id, facts.run_id, coalesce(bounds[b.no - 1], 0), b.last
    from unnest(bounds) with ordinality b (last, no)
    join holdfast.run_steps n on n.run_id = new_id and n.name = 'page-' || b.no;
  return new_id;
end
$$;
