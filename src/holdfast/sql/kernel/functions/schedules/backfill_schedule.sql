-- Fires past ticks of a schedule, up to 1000 nominal times: all that have not started anything, whatever became of them
-- before. All of them are fired, or none. Returns one row per tick that it fired, in order. `actor` names the person
-- that the login acts for.
create or replace function holdfast.backfill_schedule(
  name text, ticks timestamptz[], reason text default null, tenant text default 'default', actor text default null)
returns table (at timestamptz, ids text[])
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  schedule constant holdfast.schedules := holdfast.schedule_to_change(
    backfill_schedule.name, backfill_schedule.tenant, backfill_schedule.reason, backfill_schedule.actor);
  who constant text := coalesce(backfill_schedule.actor, session_user);
  fired int := 0;
begin
  if cardinality(backfill_schedule.ticks) > 1000 then
    perform holdfast.refuse('RN005', format('a backfill fires at most 1000 ticks, got %s',
                                            cardinality(backfill_schedule.ticks)),
                            'take a shorter time, and then the next', 'ticks');
  end if;
  if exists (select from unnest(backfill_schedule.ticks) t (at) where (t.at + schedule.shift <= clock) is not true) then
    perform holdfast.refuse('RN005', 'a backfill is for ticks of the past', 'end it before now', 'ticks');
  end if;
  for backfill_schedule.at in
    select distinct t.at from unnest(backfill_schedule.ticks) t (at)
     where not exists (select from holdfast.ticks f
                        where f.tenant = schedule.tenant and f.name = schedule.name and f.at = t.at
                          and f.outcome = 'started')  -- guard: backfill
     order by t.at
  loop
    perform holdfast.set_actor('user', who, coalesce(backfill_schedule.reason,
                                                     format('backfill of schedule %s', schedule.name)));
    backfill_schedule.ids := holdfast.start_tick(schedule, clock);
    perform holdfast.set_actor();
    insert into holdfast.ticks as f (tenant, name, at, due_at, fired_at, cause, outcome, face, ids, actor)
    values (schedule.tenant, schedule.name, backfill_schedule.at, backfill_schedule.at + schedule.shift, clock,
            'backfill', 'started', schedule.face, backfill_schedule.ids, who)
    on conflict on constraint ticks_pkey do update
      set fired_at = excluded.fired_at, cause = excluded.cause, outcome = excluded.outcome, face = excluded.face,
          ids = excluded.ids, error = null, actor = excluded.actor;
    fired := fired + 1;
    return next;
  end loop;
  perform holdfast.note_schedule(
    schedule.tenant, schedule.name, 'backfilled', 'user', backfill_schedule.actor, backfill_schedule.reason,
    jsonb_build_object('ticks', fired));
end
$$;
grant execute on function holdfast.backfill_schedule to hf_operator;
