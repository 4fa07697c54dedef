-- Makes more steps due of the runs that are to get them (runs_to_fill), and returns what count_lots counts. Runs that
-- somebody else is admitting, moving or changing are passed over. Whoever calls it, the moves are the system's.
create or replace function holdfast.take_lots(clock timestamptz)
returns jsonb[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  actor_kind constant text := coalesce(current_setting('holdfast.actor_kind', true), '');
  actor constant text := coalesce(current_setting('holdfast.actor', true), '');
  reason constant text := coalesce(current_setting('holdfast.reason', true), '');
  run_id uuid;
  lot jsonb;
  lots jsonb[] := '{}';
begin
  perform holdfast.set_actor('system', 'window');
  foreach run_id in array holdfast.runs_to_fill(10) loop
    if pg_try_advisory_xact_lock(holdfast.run_lock(run_id)) then
      lot := holdfast.take_lot(run_id, take_lots.clock);
      lots := lots || case when lot is null then '{}' else array[lot] end;
    end if;
  end loop;
  perform holdfast.set_actor(actor_kind, actor, reason);
  return lots;
end
$$;
