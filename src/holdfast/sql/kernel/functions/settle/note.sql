-- Writes a message on a step that the caller holds, and returns the note's id. A worker's first note also fires
-- `started` if the machine distinguishes claimed from running. With a `key` a note is written once: later calls return
-- its id.
create or replace function holdfast.note(
  step_id bigint, lease_id bigint, level text default 'info', message text default '', payload jsonb default '{}',
  key text default null)
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  step holdfast.steps;
  written bigint;
begin
  if note.level is null or note.level not in ('debug', 'info', 'warn', 'error') then
    perform holdfast.refuse('RN005', format('level must be debug, info, warn or error, got %s', note.level),
                            'use info for progress', 'level');
  end if;
  perform holdfast.check_name('key', note.key, 400);
  perform holdfast.check_size('a note''s payload', note.payload);
  perform holdfast.check_size('a note''s message', to_jsonb(note.message));
  -- Locked, so that a rescue at the same time comes before or after this note.
  select s.* into step from holdfast.steps s
   where s.id = note.step_id
     and s.lease_id = note.lease_id  -- guard: lease
     for update;
  if step.id is null
     or not holdfast.matches_any(allowed, step.tenant)  -- guard: tenant
  then
    perform holdfast.refuse('RN002', format('step %s is not held under lease %s', note.step_id, note.lease_id),
                            'stop working on it: another worker has it, or it is over');
  end if;
  perform holdfast.set_actor('worker', step.lease_owner);
  update holdfast.steps s
     set state = m.to_state, last_event = 'started'
    from holdfast.machine_moves m
   where s.id = step.id and m.machine = s.machine and m.from_state = s.state and m.event = 'started';
  perform holdfast.set_actor();
  if note.key is not null then
    written := nextval('holdfast.stream_ids');
    insert into holdfast.note_keys values (step.id, note.key, written,
                                           clock + interval '30 days') on conflict do nothing;
    if not found then
      return (select k.note_id from holdfast.note_keys k where k.step_id = step.id and k.key = note.key);
    end if;
  end if;
  insert into holdfast.notes (id, at, tenant, step_id, run_id, attempt, lease_id, level, message, payload)
  values (coalesce(written, nextval('holdfast.stream_ids')), clock, step.tenant, step.id, step.run_id, step.attempt,
          step.lease_id, note.level, coalesce(note.message, ''), coalesce(note.payload, '{}'))
  returning id into written;
  return written;
end
$$;
grant execute on function holdfast.note to hf_worker;
