-- Starts the work of a tick through its face and returns the ids. A task's creation is journaled too: its row does not
-- say who started it. The caller has called set_actor.
create or replace function holdfast.start_tick(schedule holdfast.schedules, clock timestamptz)
returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  actor_kind constant text := current_setting('holdfast.actor_kind', true);
  actor constant text := current_setting('holdfast.actor', true);
  reason constant text := current_setting('holdfast.reason', true);
  ids text[];
begin
  execute format('select %s($1, $2, $3, $4)', (select holdfast.face_name(f.starts) from holdfast.faces f
                                                where f.face = schedule.face))
    into ids using schedule.target, schedule.input, schedule.options, schedule.tenant;
  if coalesce(ids, '{}') = '{}' then
    perform holdfast.refuse('RN005', format('the face %s started nothing for %s', schedule.face, schedule.target),
                            'check the target and its options', 'target');
  end if;
  insert into holdfast.journal (at, tenant, machine, from_state, event, to_state, actor_kind, actor, step_id, attempt,
                                reason, login)
  select start_tick.clock, s.tenant, s.machine, 'new', 'created', s.state, actor_kind, actor, s.id, s.attempt, reason,
         case when actor_kind = 'user' and actor <> session_user then session_user end
    from holdfast.steps s
   where s.id = any (array(select u.id::bigint from unnest(ids) u (id) where u.id ~ '^[0-9]{1,18}$'))
     and s.created_at >= start_tick.clock and s.last_event is null;  -- a face may return what was there before
  return ids;
end
$$;
