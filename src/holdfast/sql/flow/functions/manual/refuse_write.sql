-- The trigger of the views, which are read-only: names the function to call instead.
create or replace function flow.refuse_write()
returns trigger
language plpgsql security definer  -- only the owner may call holdfast.refuse
set search_path = pg_catalog, pg_temp
as $$
begin
  if tg_table_name like '%_transitions' then
    perform holdfast.refuse('RN008', format('%s is append-only: %s is refused', tg_table_name, lower(tg_op)),
                            'each move of a task or a step writes its own entry');
  end if;
  perform holdfast.refuse('RN005', format('flow.%s cannot be changed by %s', tg_table_name, lower(tg_op)), case tg_op
    when 'INSERT' then 'start a task with flow.start_task(name, context) or flow.initialize_task(name, steps, context)'
    when 'UPDATE' then 'retry a failed task with holdfast.retry, resolve it with holdfast.resolve, '
                       'cancel it with holdfast.cancel'
    else 'end a task with holdfast.cancel; retention removes finished tasks by the rules of holdfast.retention_list, '
         'at once with `holdfast retention run`' end);
  return null;
end
$$;
