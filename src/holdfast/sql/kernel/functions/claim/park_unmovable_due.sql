-- Parks those of the steps that are free and due although their machine has no move for the event, and writes a note.
-- So a row that cannot move never fails its batch, and later claims do not meet it again.
create or replace function holdfast.park_unmovable_due(candidates bigint[], event text, clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  with aside as (
    update holdfast.steps s
       set due_at = null, parked_due_at = coalesce(s.due_at, s.parked_due_at), parked_for = 'move', limited_by = null
     where s.id = any (park_unmovable_due.candidates)
       and (s.due_at + interval '0' is not null or coalesce(s.parked_for, '') = 'limit')
    returning s.*)
  insert into holdfast.notes (at, tenant, step_id, run_id, attempt, level, message, payload)
  select park_unmovable_due.clock, a.tenant, a.id, a.run_id, a.attempt, 'error',
         format('machine %s has no move %s from state %s: the step is parked',
                a.machine, park_unmovable_due.event, a.state),
         jsonb_build_object('machine', a.machine, 'state', a.state, 'event', park_unmovable_due.event)
    from aside a;
end
$$;
