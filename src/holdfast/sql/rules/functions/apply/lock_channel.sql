-- Locks the row of a run's tenant and channel. Whoever opens a run does so while looking for shared items, so that of
-- two runs one sees the other.
create or replace function rules.lock_channel(facts rules.run_facts)
returns void
language sql
begin atomic
  select from rules.channel_uses u
   where u.tenant = facts.tenant and u.channel = facts.channel
     for update;  -- guard: lock
end;
