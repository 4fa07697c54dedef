-- Refuses staging tables that are missing or that stage_steps did not make: a caller's own object of that name could
-- run its code as the owner.
create or replace function holdfast.check_staging()
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  ours int;
begin
  select count(*) into ours
    from pg_class c
   where c.relnamespace = pg_my_temp_schema() and c.relname in ('staged_steps', 'staged_edges')
     and (c.relname = 'staged_edges' or exists (
           -- missing in a table that an older release made
           select from pg_attribute a where a.attrelid = c.oid and a.attname = 'own_id'))
     and c.relkind = 'r' and c.relowner = (select r.oid from pg_roles r where r.rolname = current_user);
  if ours <> 2 then
    perform holdfast.refuse('RN005', 'nothing is staged in this transaction',
                            'call holdfast.stage_steps() first, then COPY');
  end if;
end
$$;
