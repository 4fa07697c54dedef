-- Returns the states of a task (no step_id) and its steps by the journal alone, for comparison with the rows: the last
-- move's state, or the initial state of the machine. Null if the row has moved and its journal is pruned.
create or replace function flow.states_from_history(task_id uuid)
returns table (step_id bigint, name text, state text, moves bigint, last_moved_at timestamptz)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- the story of one task, whatever the statistics say
set jit = off
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return query
  select null::bigint, t.name, last.to_state, h.moves, last.at
    from holdfast.runs t
   cross join lateral (
     select count(*) as moves, max(j.id) as id from holdfast.journal j where j.run_id = t.id and j.step_id is null) h
    left join lateral (
     select j.to_state, j.at from holdfast.journal j where j.run_id = t.id and j.step_id is null
       and j.id = h.id) last on true
   where t.id = states_from_history.task_id and t.machine = 'flow.task' and holdfast.matches_any(allowed, t.tenant)
  union all
  select s.id, n.name, coalesce(last.to_state, case when s.last_event is null then b.state end), h.moves, last.at
    from holdfast.run_steps n
    join holdfast.steps s on s.id = n.step_id
    join holdfast.machine_states b on b.machine = s.machine and b.is_initial
   cross join lateral (select count(*) as moves, max(j.id) as id from holdfast.journal j where j.step_id = s.id) h
    left join lateral (select j.to_state, j.at from holdfast.journal j where j.step_id = s.id
                       and j.id = h.id) last on true
   where n.run_id = states_from_history.task_id and holdfast.matches_any(allowed, s.tenant);
end
$$;
grant execute on function flow.states_from_history to hf_producer, hf_worker, hf_reader, hf_operator;
