-- The trigger of steps and runs that keeps their ids: the journal's triggers match old and new rows by id.
create or replace function holdfast.refuse_renumbering()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.refuse('RN001', format('the ids of %s cannot be changed', tg_table_name),
                          'start another step or run instead');
  return null;
end
$$;
