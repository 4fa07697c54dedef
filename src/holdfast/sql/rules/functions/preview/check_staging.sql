-- Refuses staging tables that are missing or that stage_targets did not make: a caller's own object of that name could
-- run its code as the owner.
create or replace function rules.check_staging()
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  ours int;
begin
  perform holdfast.check_staging();
  select count(*) into ours
    from pg_class c
   where c.relnamespace = pg_my_temp_schema() and c.relname in ('staged_steps', 'staged_refusals')
     and (c.relname = 'staged_refusals' or exists (
           select from pg_attribute a where a.attrelid = c.oid and a.attname = 'writes_compare_at'))
     and c.relkind = 'r' and c.relowner = (select r.oid from pg_roles r where r.rolname = current_user);
  if ours <> 2 then
    perform holdfast.refuse('RN005', 'no targets are staged in this transaction',
                            'call rules.stage_targets() first, then COPY');
  end if;
end
$$;
