-- The trigger of the views, which are read-only: names the function to call instead.
create or replace function work.refuse_write()
returns trigger
language plpgsql security definer  -- only the owner may call holdfast.refuse
set search_path = pg_catalog, pg_temp
as $$
begin
  if tg_table_name = 'audit_logs' then
    perform holdfast.refuse('RN008', format('audit_logs is append-only: %s is refused', lower(tg_op)),
                            'each move of a task writes its own entry');
  end if;
  perform holdfast.refuse('RN005', format('work.tasks cannot be changed by %s', lower(tg_op)), case tg_op
    when 'INSERT' then 'start a task with holdfast.start_task(name, input)'
    when 'UPDATE' then 'claim with work.claim_next_task, report with holdfast.settle_steps, retry a failed '
                       'task with holdfast.retry, cancel one with holdfast.cancel'
    else 'end a task with holdfast.cancel; retention removes finished tasks by the rules of holdfast.retention_list, '
         'at once with `holdfast retention run`' end);
  return null;
end
$$;
