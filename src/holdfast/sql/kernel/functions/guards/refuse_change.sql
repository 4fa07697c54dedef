-- The trigger of append-only tables and of each of their partitions: rows are never changed.
create or replace function holdfast.refuse_change()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.refuse(
    'RN008', format('%s is append-only: %s is refused', tg_table_name, lower(tg_op)),
    case when tg_table_name ~ '^(journal|notes)(_|$)'
         then format('retention drops whole months (%s); `holdfast retention set 1y --journal` changes that',
                     (select holdfast.rule_text(r) from holdfast.history_rule('journal') r))
         else 'its rows stay; retention does not remove them' end);
  return null;
end
$$;
