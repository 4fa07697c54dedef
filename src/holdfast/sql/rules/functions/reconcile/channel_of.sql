-- Returns the channel of a run as it is registered for its tenant, or else for all.
create or replace function rules.channel_of(facts rules.run_facts)
returns rules.known_channels
language sql stable
begin atomic
  select c from rules.known_channels c
   where c.channel = facts.channel and c.tenant in (facts.tenant, '*')
   order by c.tenant = '*' limit 1;
end;
