-- What happened to a run and to its steps, in order, as step_events has it; `step` is a step's name in the run, and
-- null where the run itself moved. Of a run that was pruned the names are gone: there it is the step's number. Sees
-- what its caller may see.
create or replace function holdfast.run_events(of_run uuid)
returns table (id bigint, at timestamptz, kind text, step_id bigint, step text, event text, from_state text,
               to_state text, actor_kind text, actor text, message text, payload jsonb, attempt int)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- the story of one run, whatever the statistics say
set jit = off
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return query
  select j.id, j.at, 'move', j.step_id, null::text, j.event, j.from_state, j.to_state, j.actor_kind, j.actor, j.reason,
         j.error, j.attempt
    from holdfast.journal j
   where j.run_id = run_events.of_run and j.step_id is null and holdfast.matches_any(allowed, j.tenant)
  union all
  select y.id, y.at, y.entry, y.step_id, n.name, y.what, y.from_state, y.to_state, y.actor_kind, y.actor, y.message,
         y.payload, y.attempt
    from holdfast.run_steps n
   cross join lateral (select * from holdfast.step_story t where t.step_id = n.step_id offset 0) y  -- each by its index
   where n.run_id = run_events.of_run
  union all
  select y.id, y.at, y.entry, y.step_id, y.step_id::text, y.what, y.from_state, y.to_state, y.actor_kind, y.actor,
         y.message, y.payload, y.attempt
    from holdfast.pruned_steps(run_events.of_run) g (id)
   cross join lateral (select * from holdfast.step_story t where t.step_id = g.id offset 0) y
   order by 1;
end
$$;
grant execute on function holdfast.run_events to hf_producer, hf_worker, hf_reader, hf_operator;
