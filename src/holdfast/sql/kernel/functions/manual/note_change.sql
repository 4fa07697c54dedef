-- Writes a note on each of the steps about a change by a person that is not a move: what was changed, by whom (`actor`,
-- or the login if null) and why.
create or replace function holdfast.note_change(
  ids bigint[], what text, payload jsonb, reason text default null, actor text default null)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  name constant text := coalesce(note_change.actor, session_user);
begin
  perform holdfast.check_reason(note_change.reason);
  perform holdfast.check_name('actor', note_change.actor);
  insert into holdfast.notes (at, tenant, step_id, run_id, attempt, lease_id, level, message, payload)
  select clock, s.tenant, s.id, s.run_id, s.attempt, s.lease_id, 'info',
         format('%s by %s%s', note_change.what, name, ': ' || note_change.reason),
         jsonb_strip_nulls(note_change.payload || jsonb_build_object(
           'actor', name, 'login', case when name <> session_user then session_user end, 'reason', note_change.reason))
    from holdfast.steps s
   where s.id = any (note_change.ids)
   order by s.id;
end
$$;
