-- Returns the id of the event with a key as rules.events derives it, or null if `event_key` has no such form. There are
-- three: <run>:<target>:apply:<n>, the claim that began try `n` of the target, counted from 0 over all its retries;
-- <run>:<type>:<id>, a move of the run; and <limit>:breaker:<id>. Such a key is reserved: refuses one without its
-- event, because that may follow. A run that is unknown, or removed by now, gets no more events, so its keys are free.
create or replace function rules.derived_event(event_key text, tenant text)
returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  parts constant text[] := regexp_match(
    derived_event.event_key,
    '^(?:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):(?:([0-9]{1,18}):apply:([0-9]{1,9})|([a-z_]+):([0-9]{1,18}))'
    '|(rules:.+):breaker:([0-9]{1,18}))$');
  type text;
  id bigint;
begin
  if parts is null then
    return null;
  elsif parts[6] is not null then
    id := (select c.id from holdfast.limit_changes c
            where c.name = parts[6] and c.tenant = derived_event.tenant and c.id = parts[7]::bigint
              and c.event in ('opened', 'closed'));
  elsif not exists (select from rules.run_facts f
                     where f.run_id = parts[1]::uuid and f.tenant = derived_event.tenant) then
    return null;
  elsif parts[2] is not null then
    id := (
      select min(t.id) from (
        select j.id, j.event,
               count(*) filter (where j.event in ('retried', 'failed', 'expired')) over (order by j.id) as n
          from holdfast.journal j
         where j.step_id = parts[2]::bigint and j.run_id = parts[1]::uuid and j.machine = 'rules.target') t
       where t.event = 'claimed' and t.n = parts[3]::int);
  else
    type := 'automation.run.' || parts[4];
    id := (select e.id from rules.events e  -- the type leaves one branch of the view
            where e.rule_run_id = parts[1]::uuid and e.id = parts[5]::bigint and e.event_type = type
              and e.event_key = derived_event.event_key);
    if id is null and parts[4] not in ('previewed', 'queued', 'started', 'applied', 'partial', 'failed', 'retried',
                                       'rolled_back') then
      return null;
    end if;
  end if;
  if id is null then  -- guard: reserved
    perform holdfast.refuse('RN005', format('event key %s is reserved, and there is no such event',
                                            derived_event.event_key),
                            'write the event of a try while its target is APPLYING, or use a key of your own',
                            'event_key');
  end if;
  return id;
end
$$;
