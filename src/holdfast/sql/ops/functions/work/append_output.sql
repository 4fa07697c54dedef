-- Appends several events to a run that the caller holds, in order and in one transaction, as a program may print much.
-- Each has a key, and is written once. Returns how many were written.
create or replace function ops.append_output(
  step_id bigint, lease_id bigint, levels text[], messages text[], payloads jsonb[], keys text[])
returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  step constant holdfast.steps := ops.held_run(append_output.step_id, append_output.lease_id);
begin
  perform holdfast.check_note(g.level, g.message, g.payload, coalesce(g.key, ''))
     from unnest(append_output.levels, append_output.messages, append_output.payloads,
                 append_output.keys) g (level, message, payload, key);
  return holdfast.write_notes(step, append_output.levels, append_output.messages, append_output.payloads,
                              append_output.keys, holdfast.clock());
end
$$;
grant execute on function ops.append_output to hf_worker;
