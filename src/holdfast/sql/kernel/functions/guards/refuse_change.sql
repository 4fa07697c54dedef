-- The trigger of append-only tables and of each of their partitions: rows are never changed.
create or replace function holdfast.refuse_change()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.refuse('RN008', format('%s is append-only: %s is refused', tg_table_name, lower(tg_op)),
                          'only retention removes old rows, by dropping whole partitions');
  return null;
end
$$;
