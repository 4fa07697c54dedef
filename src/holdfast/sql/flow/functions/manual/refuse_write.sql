-- The trigger of the views: they are read. Says which function does what the statement was to do.
create or replace function flow.refuse_write()
returns trigger
language plpgsql security definer  -- what raises our errors is for the owner alone
set search_path = pg_catalog, pg_temp
as $$
begin
  if tg_table_name like '%_transitions' then
    perform holdfast.refuse('RN008', format('%s is append-only: %s is refused', tg_table_name, lower(tg_op)),
                            'each move of a task or a step writes its own entry');
  end if;
  perform holdfast.refuse('RN005', format('flow.%s takes no %s', tg_table_name, lower(tg_op)), case tg_op
    when 'INSERT' then 'start a task with flow.start_task(name, context) or flow.initialize_task(name, steps, context)'
    when 'UPDATE' then 'try a failed task again with holdfast.retry, deal with it by holdfast.resolve, '
                       'end one with holdfast.cancel'
    else 'end a task with holdfast.cancel; what is over leaves by retention' end);
  return null;
end
$$;
