-- The trigger of what is append-only, and of each partition of it: what is written there stays.
create or replace function holdfast.refuse_change()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.refuse('RN008', format('%s is append-only: %s is refused', tg_table_name, lower(tg_op)),
                          'old rows leave by retention, which drops whole partitions');
  return null;
end
$$;
