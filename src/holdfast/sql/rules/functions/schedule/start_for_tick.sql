-- Starts what a schedule of rules is for. With a run in its input it applies that run (`apply`), or starts the task
-- that undoes it (`revert`). With a rule in its input it starts the task that previews the rule. Returns the ids. The
-- caller has called set_actor.
create or replace function rules.start_for_tick(target text, input jsonb, options jsonb, tenant text)
returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  facts rules.run_facts;
begin
  perform holdfast.refuse_options('rules', start_for_tick.options, '{}');
  if start_for_tick.input ? 'rule' then
    return rules.plan_for_tick(start_for_tick.input, start_for_tick.tenant);
  end if;
  if start_for_tick.target not in ('apply', 'revert') or not start_for_tick.input ? 'run_id' then
    perform holdfast.refuse('RN005', format('a schedule of rules cannot start %s', start_for_tick.target),
                            'make it with run.apply(at=…), hf.rules.schedule or `holdfast rules schedule`', 'target');
  end if;
  if start_for_tick.target = 'apply' then
    return rules.apply_for_tick(start_for_tick.input, start_for_tick.tenant);
  end if;
  facts := rules.facts_of_tick(start_for_tick.input, start_for_tick.tenant);
  return array[holdfast.start_step('work.task', 'revert:' || facts.channel,
                                   start_for_tick.input || jsonb_build_object('run_id', facts.run_id),
                                   'rules:' || facts.channel, priority => 2, tenant => facts.tenant)::text];
end
$$;
