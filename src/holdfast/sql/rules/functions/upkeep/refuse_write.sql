-- The trigger of the views, which are read-only: names the function to call instead.
create or replace function rules.refuse_write()
returns trigger
language plpgsql security definer  -- only the owner may call holdfast.refuse
set search_path = pg_catalog, pg_temp
as $$
begin
  if tg_table_name in ('price_changes', 'events') then
    perform holdfast.refuse('RN008', format('rules.%s is append-only: %s is refused', tg_table_name, lower(tg_op)),
                            case tg_table_name when 'events' then 'write an event with rules.write_event'
                                               else 'each target that is applied adds its own row' end);
  end if;
  perform holdfast.refuse('RN005', format('rules.%s cannot be changed by %s', tg_table_name, lower(tg_op)),
    case tg_table_name
      when 'channels' then 'use rules.define_channel'
      when 'refusals' then 'a preview writes them'
      when 'reconciliations' then 'use rules.reconcile'
      when 'mismatches' then 'a pass writes them'
      else 'use rules.take_preview, rules.apply, rules.retry_failed, rules.retry_all, rules.rollback or '
           'holdfast.stop_run' end);
  return null;
end
$$;
