-- What happened to a step, in order: its moves and its notes. `event` is the event of a move or the level of a note,
-- `message` the reason of a move or the text of a note, `payload` the error of a move or the fields of a note. Sees
-- what its caller may see.
create or replace function holdfast.step_events(of_step bigint)
returns table (id bigint, at timestamptz, kind text, step_id bigint, step text, event text, from_state text,
               to_state text, actor_kind text, actor text, message text, payload jsonb, attempt int)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- the story of one step, whatever the statistics say
set jit = off
as $$
begin
  return query
  select y.id, y.at, y.entry, y.step_id, null::text, y.what, y.from_state, y.to_state, y.actor_kind, y.actor, y.message,
         y.payload, y.attempt
    from holdfast.step_story y
   where y.step_id = step_events.of_step
   order by y.id;
end
$$;
grant execute on function holdfast.step_events to hf_producer, hf_worker, hf_reader, hf_operator;
