-- Writes the event that a run waits for a person, and why; once per key.
create or replace function rules.write_waiting(facts rules.run_facts, event_key text, reason text)
returns void
language sql
begin atomic
  insert into rules.stored_events (at, event_key, tenant, event_type, payload, run_id, correlation_id, written_by)
  values (holdfast.clock(), write_waiting.event_key, facts.tenant, 'automation.run.waiting',
          jsonb_build_object('runId', facts.run_id, 'ruleId', facts.rule_id, 'channel', facts.channel,
                             'reason', write_waiting.reason),
          facts.run_id, facts.metadata ->> 'correlationId', session_user)
  on conflict (event_key, tenant) do nothing;
end;
