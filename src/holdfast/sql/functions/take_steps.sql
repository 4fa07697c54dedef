-- Puts picked (locked, free) steps of `run_ids` under leases: the claim's second half. Steps of a run that is over are cancelled
-- instead; a step in an error state is reopened first; one whose machine has no such move is parked and reported.
create or replace function holdfast.take_steps(picked bigint[], run_ids uuid[], worker text, lease interval, clock timestamptz)
returns setof holdfast.claimed_step
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_hashjoin = off   -- by primary key, whatever the statistics say: linear in the batch
set enable_mergejoin = off
as $$
declare
  taken int := 0;
  moved int;
begin
  if cardinality(take_steps.run_ids) > 0 then
    taken := holdfast.drop_steps_of_ended_runs(take_steps.picked, take_steps.run_ids);
    perform holdfast.start_claimed_runs(take_steps.run_ids, take_steps.clock);
  end if;
  loop
    return query
    update holdfast.steps s
       set state = m.to_state, last_event = 'claimed', due_at = null, attempt = s.attempt + 1, claimed_at = take_steps.clock,
           lease_id = nextval('holdfast.lease_ids'), lease_owner = take_steps.worker,
           lease_until = take_steps.clock + coalesce(
             take_steps.lease, (select k.lease from holdfast.kinds k where k.kind = s.kind), interval '300 s')
      from holdfast.machine_moves m
     where s.id = any (take_steps.picked)
       and s.due_at + interval '0' is not null  -- not `due_at is not null`: the index of due steps would answer it
       and m.machine = s.machine and m.from_state = s.state and m.event = 'claimed'
    returning s.id, s.run_id, s.kind, s.input, s.attempt, s.lease_id, s.lease_until, s.cursor;
    get diagnostics moved = row_count;
    taken := taken + moved;
    exit when taken >= cardinality(take_steps.picked);
    update holdfast.steps s
       set state = m.to_state, last_event = 'reopened'
      from holdfast.machine_moves m
     where s.id = any (take_steps.picked) and s.due_at + interval '0' is not null
       and m.machine = s.machine and m.from_state = s.state and m.event = 'reopened';
    get diagnostics moved = row_count;
    if moved = 0 then
      perform holdfast.set_aside(take_steps.picked, 'claimed', take_steps.clock);
      exit;
    end if;
  end loop;
end
$$;
