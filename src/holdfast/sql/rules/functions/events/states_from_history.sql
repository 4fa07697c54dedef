-- Rebuilds the states of a run from the journal: one row for the run (`target_id` is null) and one per target, with how
-- often it moved. `is_whole`: each move begins where the one before it ended, so no move is missing. The targets that a
-- run has are in its plan; one that never moved is in its first state.
create or replace function rules.states_from_history(run_id uuid)
returns table (target_id bigint, status text, moves bigint, is_whole boolean)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select null::bigint, (array_agg(t.to_state order by t.id desc))[1], count(*), bool_and(t.follows)
    from (select j.id, j.to_state,
                 j.from_state = coalesce(lag(j.to_state) over (order by j.id), 'new') as follows
            from holdfast.journal j
           where j.run_id = states_from_history.run_id and j.step_id is null and j.machine = 'rules.run') t
  having count(*) > 0;
  return query
  select n.step_id, coalesce(h.status, s.state), coalesce(h.moves, 0), coalesce(h.is_whole, true)
    from holdfast.run_steps n
   cross join (select i.state from holdfast.machine_states i where i.machine = 'rules.target' and i.is_initial) s
    left join lateral (
      select (array_agg(t.to_state order by t.id desc))[1] as status, count(*) as moves, bool_and(t.follows) as is_whole
        from (select j.id, j.to_state,
                     j.from_state = coalesce(lag(j.to_state) over (order by j.id), s.state) as follows
                from holdfast.journal j where j.step_id = n.step_id and j.machine = 'rules.target') t
      having count(*) > 0) h on true
   where n.run_id = states_from_history.run_id and exists (
     select from holdfast.runs r where r.id = states_from_history.run_id and r.machine = 'rules.run')
   order by n.step_id;
end
$$;
grant execute on function rules.states_from_history to hf_producer, hf_worker, hf_reader, hf_operator;
