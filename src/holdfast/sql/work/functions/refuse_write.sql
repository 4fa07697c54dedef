-- The trigger of the views: they are read. Says which function does what the statement was to do.
create or replace function work.refuse_write()
returns trigger
language plpgsql security definer  -- what raises our errors is for the owner alone
set search_path = pg_catalog, pg_temp
as $$
begin
  if tg_table_name = 'audit_logs' then
    perform holdfast.refuse('RN008', format('audit_logs is append-only: %s is refused', lower(tg_op)),
                            'each move of a task writes its own entry');
  end if;
  perform holdfast.refuse('RN005', format('work.tasks takes no %s', lower(tg_op)), case tg_op
    when 'INSERT' then 'start a task with holdfast.start_task(name, input)'
    when 'UPDATE' then 'claim with work.claim_next_task, report with holdfast.settle_steps, try a failed task again '
                       'with holdfast.retry, end one with holdfast.cancel'
    else 'end a task with holdfast.cancel; what is over leaves by retention' end);
  return null;
end
$$;
