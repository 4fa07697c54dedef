-- Raises the error for an illegal move. It returns text, so that it can be used in place of the state.
create or replace function holdfast.refuse_move(
  machine text, from_state text, event text, to_state text, actor_kind text, subject text)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  ways text;
  is_run constant boolean := exists (
    select from holdfast.machines c where c.machine = refuse_move.machine and c.subject = 'run');
begin
  select string_agg(format('%s by %s', m.to_state, m.event), ', ' order by m.event)
    into ways
    from holdfast.machine_moves m
   where m.machine = refuse_move.machine and m.from_state = refuse_move.from_state;
  perform holdfast.refuse(
    'RN001',
    format('%s %s: %s may not move it from %s to %s (%s)', refuse_move.machine, refuse_move.subject,
           refuse_move.actor_kind,
           refuse_move.from_state, refuse_move.to_state, refuse_move.event),
    format('from %s it may become: %s', refuse_move.from_state,
           coalesce(ways, case when is_run then 'nothing, it is final: create a new run'
                               else 'nothing, it is final' end)));
  return null;
end
$$;
