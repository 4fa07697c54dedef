-- Appends several events to a run that the caller holds, in order and in one transaction: a program may print much. Each
-- has a key, and is written once. Returns how many were written.
create or replace function ops.append_output(
  step_id bigint, lease_id bigint, levels text[], messages text[], payloads jsonb[], keys text[])
returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  step constant holdfast.steps := ops.held_run(append_output.step_id, append_output.lease_id);
  written int;
begin
  perform holdfast.check_note(g.level, g.message, g.payload, coalesce(g.key, ''))
     from unnest(append_output.levels, append_output.messages, append_output.payloads,
                 append_output.keys) g (level, message, payload, key);
  with numbered as materialized (
    select g.*, nextval('holdfast.stream_ids') as id
      from unnest(append_output.levels, append_output.messages, append_output.payloads,
                  append_output.keys) g (level, message, payload, key)),
  kept as (
    insert into holdfast.note_keys
    select step.id, n.key, n.id, clock + interval '30 days' from numbered n
    on conflict do nothing
    returning note_id)
  insert into holdfast.notes (id, at, tenant, step_id, run_id, attempt, lease_id, level, message, payload)
  select n.id, clock, step.tenant, step.id, step.run_id, step.attempt, step.lease_id, n.level, n.message, n.payload
    from numbered n
   where n.id in (select k.note_id from kept k)
   order by n.id;
  get diagnostics written = row_count;
  return written;
end
$$;
grant execute on function ops.append_output to hf_worker;
