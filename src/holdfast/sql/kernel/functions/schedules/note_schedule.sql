-- Records a change of a schedule; without an actor it is the login's.
create or replace function holdfast.note_schedule(
  tenant text, name text, event text, actor_kind text, actor text, reason text, payload jsonb default '{}')
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into holdfast.schedule_changes (at, tenant, name, event, actor_kind, actor, login, reason, payload)
  values (holdfast.clock(), note_schedule.tenant, note_schedule.name, note_schedule.event, note_schedule.actor_kind,
          coalesce(note_schedule.actor, session_user),
          case when note_schedule.actor_kind = 'user' and note_schedule.actor <> session_user then session_user end,
          note_schedule.reason, note_schedule.payload);
end
$$;
