-- Refuses to open a run while another open run of the same tenant and channel has some of its items: one of the two
-- plans would be stale. Locks the channel.
create or replace function rules.refuse_shared(facts rules.run_facts)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  other record;
begin
  perform rules.lock_channel(facts);
  select s.run_id, s.items into other from rules.shared_items(facts) s limit 1;  -- guard: overlap
  if found then
    perform holdfast.refuse(
      'RN010', format('run %s has %s items in common with run %s, which is open', facts.run_id, other.items,
                      other.run_id),
      format('wait until it ends, stop it with `holdfast rules stop %s`, or leave the shared items out', other.run_id),
      other.run_id::text);
  end if;
end
$$;
