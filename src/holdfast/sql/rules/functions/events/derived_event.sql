-- Returns the id of the journal's event with a key of the form <run>:<target>:apply:<n>, or null: the claim that began
-- try `n` of the target, counted from 0 over all its retries.
create or replace function rules.derived_event(event_key text, tenant text)
returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  parts constant text[] := regexp_match(
    derived_event.event_key, '^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):([0-9]{1,18}):apply:([0-9]{1,9})$');
begin
  if parts is null then
    return null;
  end if;
  return (
    select min(t.id) from (
      select j.id, j.event,
             count(*) filter (where j.event in ('retried', 'failed', 'expired')) over (order by j.id) as n
        from holdfast.journal j
       where j.step_id = parts[2]::bigint and j.run_id = parts[1]::uuid and j.machine = 'rules.target'
         and j.tenant = derived_event.tenant) t
     where t.event = 'claimed' and t.n = parts[3]::int);
end
$$;
