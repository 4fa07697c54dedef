-- Returns those of the tenants (null: all) that the setting holdfast.tenants names, an array as PostgreSQL writes it:
-- '{a,b}'. A setting that cannot be read is refused, because ignoring it would widen the tenants.
create or replace function holdfast.narrow_to_setting(tenants text[], setting text)
returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  named text[];
begin
  begin
    named := narrow_to_setting.setting::text[];
  exception when invalid_text_representation then
    named := array[null];
  end;
  if array_ndims(named) > 1
     or exists (select from unnest(named) n (name) where holdfast.is_name(n.name) is not true) then
    perform holdfast.refuse(
      'RN005', format('holdfast.tenants must be an array of tenants, got %s',
                      to_json(left(narrow_to_setting.setting, 50))),
      'write it as in {a,b}: select set_config(''holdfast.tenants'', array[''a'', ''b'']::text, true)');
  end if;
  if narrow_to_setting.tenants is null then
    return named;
  end if;
  return array(select unnest(named) intersect select unnest(narrow_to_setting.tenants));
end
$$;
