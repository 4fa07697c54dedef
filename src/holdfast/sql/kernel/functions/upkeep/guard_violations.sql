-- Lists guards of the schema itself that are missing or disabled; part of holdfast.violations().
create or replace function holdfast.guard_violations()
returns table (invariant text, subject text, detail text)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select 'trigger_fires', w.table_name || '.' || w.name, 'the trigger is missing or disabled; run `holdfast db migrate`'
    from (values ('steps', 'journaled'), ('steps', 'begins'), ('steps', 'keeps_its_id'), ('runs', 'journaled'),
                 ('runs', 'begins'), ('runs', 'keeps_its_id'), ('edges', 'acyclic'), ('journal', 'stays'),
                 ('journal', 'stays_whole'), ('notes', 'stays'), ('notes', 'stays_whole'),
                 ('queue_pauses', 'stays'), ('queue_pauses', 'stays_whole'),
                 ('limit_changes', 'stays'), ('limit_changes', 'stays_whole'),
                 ('schedule_changes', 'stays'), ('schedule_changes', 'stays_whole'),
                 ('run_changes', 'stays'), ('run_changes', 'stays_whole'),
                 ('retention_changes', 'stays'), ('retention_changes', 'stays_whole')) w (table_name, name)
   where not exists (select from pg_trigger t
                      where t.tgrelid = to_regclass('holdfast.' || w.table_name) and t.tgname = w.name
                        and t.tgenabled in ('O', 'A'))
  union all
  select 'row_security_is_forced', c.relname, 'row-level security is off or not forced'
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant'
   where c.relnamespace = 'holdfast'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
     and c.relname <> 'role_tenants' and not (c.relrowsecurity and c.relforcerowsecurity)
  union all
  select 'partitions_are_ahead', 'journal', format('only %s ahead', holdfast.partitions_ahead())
   where holdfast.partitions_ahead() < interval '30 days'
$$;
