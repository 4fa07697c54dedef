-- The trigger of steps and runs: a row keeps its id. The journal's triggers find by it what has moved.
create or replace function holdfast.refuse_renumbering()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.refuse('RN001', format('%s keep the ids they have', tg_table_name), 'start another instead');
  return null;
end
$$;
