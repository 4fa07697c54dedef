-- Fires one tick of a locked schedule by the clock: it starts its work and records what became of it, in one
-- transaction. A tick that was recorded before is not fired again. If its face refuses to start it, the tick is
-- recorded as failed and the schedule goes on; it is skipped if the face says object_in_use, because what it would
-- start is open already. If somebody has locked what it needs, nothing is done, and it is blocked. Returns what became
-- of it; null: nothing.
create or replace function holdfast.fire_tick(schedule holdfast.schedules, at timestamptz, clock timestamptz)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  reason constant text := format('schedule %s, tick %s', schedule.name, to_char(
    fire_tick.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'));
  face constant holdfast.faces := (select f from holdfast.faces f where f.face = schedule.face);
  outcome text := 'started';
  open_ids text[] := '{}';
  is_open boolean;
  ids text[] := '{}';
  message text;
  hint text;
  error jsonb;
begin
  if exists (select from holdfast.ticks t
              where t.tenant = schedule.tenant and t.name = schedule.name and t.at = fire_tick.at) then  -- guard: tick
    return null;
  end if;
  begin
    if schedule.overlap <> 'allow' then
      open_ids := holdfast.started_ids(schedule);
      execute format('select %s($1)', holdfast.face_name(face.is_open)) into is_open using open_ids;
      open_ids := case when is_open then open_ids else '{}' end;
    end if;
    if open_ids <> '{}' and schedule.overlap = 'skip' then
      outcome := 'skipped';
      open_ids := '{}';
    else
      perform holdfast.set_actor('scheduler', 'scheduler', reason);
      if open_ids <> '{}' then
        execute format('select %s($1, $2)', holdfast.face_name(face.cancels)) using open_ids, reason;
      end if;
      ids := holdfast.start_tick(schedule, fire_tick.clock);
      perform holdfast.set_actor();
    end if;
  exception when lock_not_available then
    return 'blocked';
  when others then
    -- What another try may get past (a deadlock, a full disk, a shutdown) undoes the whole call.
    if sqlstate ~ '^(08|25|40|53|57|58)' then
      raise;
    end if;
    get stacked diagnostics message = message_text, hint = pg_exception_hint;
    outcome := case sqlstate when '55006' then 'skipped' else 'failed' end;
    ids := '{}';
    open_ids := '{}';
    error := case outcome when 'failed' then jsonb_strip_nulls(jsonb_build_object(
      'type', sqlstate, 'message', message, 'next', nullif(hint, ''))) end;
  end;
  perform holdfast.record_tick(schedule, fire_tick.at, fire_tick.clock, outcome, ids, open_ids, error);  -- guard: row
  return outcome;
end
$$;
