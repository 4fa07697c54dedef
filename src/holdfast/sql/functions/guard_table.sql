-- Gives a table of ours the named CHECK, not valid, unless it has just that one already. One of the two places where a
-- statement is built from strings: a CHECK can only be written that way.
create or replace function holdfast.guard_table(table_name text, guard text, condition text)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  fingerprint constant text := md5(guard_table.condition);
  stands constant boolean := exists (
    select from pg_constraint c
     where c.conrelid = format('holdfast.%I', guard_table.table_name)::regclass and c.conname = guard_table.guard);
begin
  if stands and exists (select from holdfast.installed i
                         where i.part = guard_table.table_name || '.' || guard_table.guard and i.digest = fingerprint) then
    return false;
  end if;
  if stands then
    execute format('alter table holdfast.%I drop constraint %I', guard_table.table_name, guard_table.guard);
  end if;
  execute format('alter table holdfast.%I add constraint %I %s not valid',
                 guard_table.table_name, guard_table.guard, guard_table.condition);
  insert into holdfast.installed values (guard_table.table_name || '.' || guard_table.guard, fingerprint)
  on conflict (part) do update set digest = excluded.digest, at = excluded.at;
  return true;
end
$$;
