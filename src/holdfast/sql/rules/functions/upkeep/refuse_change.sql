-- The trigger of tables that are written once. Rows of the ledger and stored events go when they are as old as
-- rules.sweep_rows lets them be; plans and values go with their run.
create or replace function rules.refuse_change()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if tg_op = 'DELETE' and tg_table_name in ('ledger', 'stored_events') then
    if old.at < holdfast.clock() - rules.kept_for(tg_table_name) then  -- guard: age
      return old;
    end if;
  end if;
  perform holdfast.refuse('RN008', format('rules.%s is written once: %s is refused', tg_table_name, lower(tg_op)),
                          'preview again for another plan');
  return null;
end
$$;
