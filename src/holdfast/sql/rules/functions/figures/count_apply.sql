-- Counts a run that is applied; one that is retried was counted before.
create or replace function rules.count_apply(facts rules.run_facts, from_state text)
returns void
language sql
begin atomic
  insert into rules.figures as g (tenant, channel, slot, applies)
  select facts.tenant, facts.channel, pg_backend_pid(), 1 where count_apply.from_state = 'PREVIEW'
  on conflict (tenant, channel, slot) do update set applies = g.applies + 1;
end;
