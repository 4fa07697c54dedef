-- Starts the task that previews a rule on a channel, and returns its id. While a run of the rule is open there, the
-- tick is skipped: object_in_use tells the kernel.
create or replace function rules.plan_for_tick(input jsonb, tenant text)
returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  channel constant text := plan_for_tick.input ->> 'channel';
  rule_id constant text := rules.rule_of_tick(plan_for_tick.input);
  other constant uuid := rules.open_run(rule_id, channel, plan_for_tick.tenant);
begin
  perform rules.check_channel(channel, plan_for_tick.tenant);
  if other is not null then  -- guard: open
    perform holdfast.refuse('55006', format('run %s of rule %s is open', other, rule_id),
                            'the next tick previews the rule again', other::text);
  end if;
  return array[holdfast.start_step('work.task', 'schedule:' || channel, plan_for_tick.input, 'rules:' || channel,
                                   priority => 2, tenant => plan_for_tick.tenant)::text];
end
$$;
