-- Refuses what a step cannot name as its limits: more than three, one twice, a family, or one of those that apply by
-- themselves.
create or replace function holdfast.check_limit_names(names text[])
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  name text;
begin
  if cardinality(check_limit_names.names) > 3 then
    perform holdfast.refuse(
      'RN005', format('a step names up to three limits, got %s: %s', cardinality(check_limit_names.names),
                      left(array_to_string(check_limit_names.names, ', '), 200)),
      'limits of its queue, kind and tenant apply without being named', 'limits');
  end if;
  foreach name in array check_limit_names.names loop
    perform holdfast.check_limit_name(name, true);
    if name ~ '^(queue|kind|tenant):' then
      perform holdfast.refuse('RN005', format('limit %s applies by itself and is not named', name),
                              'leave it out', 'limits');
    end if;
    if cardinality(array_positions(check_limit_names.names, name)) > 1 then
      perform holdfast.refuse('RN005', format('a step names limit %s twice', name), 'name it once', 'limits');
    end if;
  end loop;
end
$$;
