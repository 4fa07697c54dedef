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
begin
  perform holdfast.check_note(note.level, note.message, note.payload, note.key);
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
  return holdfast.write_note(step, note.level, note.message, note.payload, note.key, clock);
end
$$;
grant execute on function holdfast.note to hf_worker;
