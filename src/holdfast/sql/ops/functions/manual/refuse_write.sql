-- The trigger of the views, which are read-only: names the function to call instead.
create or replace function ops.refuse_write()
returns trigger
language plpgsql security definer  -- only the owner may call holdfast.refuse
set search_path = pg_catalog, pg_temp
as $$
begin
  if tg_table_name = 'run_events' then
    perform holdfast.refuse('RN008', format('run_events is append-only: %s is refused', lower(tg_op)),
                            'append an event with ops.append_event; each move of a run writes its own');
  end if;
  perform holdfast.refuse('RN005', format('ops.%s cannot be changed by %s', tg_table_name, lower(tg_op)),
    case tg_table_name
      when 'projects' then 'use ops.define_project'
      when 'environments' then 'use ops.define_environment'
      when 'artifacts' then 'use ops.add_artifact'
      when 'approvals' then 'use ops.decide_approval'
      when 'webhook_deliveries' then 'the webhook receiver records them'
      else case tg_op when 'INSERT' then 'queue a run with ops.queue_run'
                      else 'end a run with ops.cancel_run; retention removes finished runs by the rules of '
                           'holdfast.retention_list, at once with `holdfast retention run`' end end);
  return null;
end
$$;
