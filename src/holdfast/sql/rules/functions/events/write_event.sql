-- Writes an event, and returns its id. The same key and tenant again return the same id and store nothing, also if the
-- key is that of an event which the journal has. Keys of the journal's forms are reserved for it.
create or replace function rules.write_event(
  event_key text, event_type text, payload jsonb default '{}', tenant text default 'default',
  correlation_id text default null, run_id uuid default null)
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  event_id bigint;
begin
  perform holdfast.check_tenant(write_event.tenant);
  perform holdfast.check_name('event_key', coalesce(write_event.event_key, ''), 400);
  perform holdfast.check_name('event_type', coalesce(write_event.event_type, ''));
  perform holdfast.check_name('correlation_id', write_event.correlation_id, 400);
  perform holdfast.check_size('payload', write_event.payload);
  if write_event.run_id is not null and not exists (
       select from rules.run_facts f where f.run_id = write_event.run_id and f.tenant = write_event.tenant) then
    perform holdfast.refuse('RN004', format('there is no rule run %s of tenant %s', write_event.run_id,
                                            write_event.tenant), 'leave run_id out', 'run_id');
  end if;
  event_id := rules.derived_event(write_event.event_key, write_event.tenant);
  if event_id is not null then
    return event_id;
  end if;
  insert into rules.stored_events (at, event_key, tenant, event_type, payload, run_id, correlation_id, written_by)
  values (holdfast.clock(), write_event.event_key, write_event.tenant, write_event.event_type,
          coalesce(write_event.payload, '{}'), write_event.run_id,
          coalesce(write_event.correlation_id, (select f.metadata ->> 'correlationId' from rules.run_facts f
                                                 where f.run_id = write_event.run_id)), session_user)
  on conflict (event_key, tenant) do nothing  -- guard: once
  returning id into event_id;
  if event_id is null then
    select e.id into strict event_id from rules.stored_events e
     where e.event_key = write_event.event_key and e.tenant = write_event.tenant;
  end if;
  return event_id;
end
$$;
grant execute on function rules.write_event to hf_producer, hf_worker, hf_operator;
