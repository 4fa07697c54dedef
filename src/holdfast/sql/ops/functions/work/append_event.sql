-- Appends an event to a run and returns its id. The first event of a claimed run moves it to running, and events keep
-- its lease. The same level and message within 10 seconds is a repetition, which returns the existing event; with
-- `p_event_key` only the same key is. A finished run takes no new event.
create or replace function ops.append_event(
  p_run_id text, p_level text, p_message text, p_payload jsonb default '{}', p_event_key text default null)
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set jit = off
set plan_cache_mode = force_generic_plan  -- one plan is left: make it once, not per call
as $$
declare
  clock constant timestamptz := holdfast.clock();
  held record;
  step holdfast.steps;
  facts ops.run_facts;
  event bigint;
begin
  perform holdfast.check_note(p_level, p_message, p_payload, p_event_key);
  select * into held from ops.lock_run(p_run_id);
  step := held.step;
  facts := held.facts;
  event := ops.repeated_event(step.id, p_level, coalesce(p_message, ''), p_event_key, clock);
  if step.finished_at is not null then
    if event is null then
      perform holdfast.refuse('RN010', format('run %s is %s and takes no new event', facts.run_id, step.state),
                              'stop working on it', 'p_run_id');
    end if;
    return ops.event_id(event);
  end if;
  if step.lease_id is not null then
    perform holdfast.report_on(step, coalesce(facts.lease, interval '5 minutes'), true, clock);
  end if;
  return ops.event_id(coalesce(
    event, holdfast.write_note(step, p_level, p_message, p_payload, p_event_key, clock)));
end
$$;
grant execute on function ops.append_event to hf_worker;
