-- Counts lots that take_lot has made due in their runs, and returns how many steps they have. A claim does this last:
-- it locks the runs, and settles wait for them. Whoever calls it, the moves are the system's.
create or replace function holdfast.count_lots(lots jsonb[], clock timestamptz)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  actor_kind constant text := coalesce(current_setting('holdfast.actor_kind', true), '');
  actor constant text := coalesce(current_setting('holdfast.actor', true), '');
  reason constant text := coalesce(current_setting('holdfast.reason', true), '');
  lot jsonb;
  run holdfast.runs;
  admitted int := 0;
begin
  perform holdfast.set_actor('system', 'window');
  foreach lot in array count_lots.lots loop
    select r.* into run from holdfast.runs r where r.id = (lot ->> 'run_id')::uuid;
    perform holdfast.count_lot(
      run, array(select f.id::bigint from jsonb_array_elements_text(lot -> 'fresh') f (id)), 0, (lot ->> 'taken')::int,
      (lot ->> 'reached')::bigint, (lot ->> 'is_last')::boolean, count_lots.clock);
    admitted := admitted + (lot ->> 'admitted')::int;
  end loop;
  perform holdfast.set_actor(actor_kind, actor, reason);
  return admitted;
end
$$;
