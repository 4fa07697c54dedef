-- Admits the next steps of a run with a window, until it has `window_size` live steps, and returns how many. Closes the
-- run if nothing is left of it. The caller has the run's lock (run_lock) and has called set_actor. Steps are locked
-- first, the run's row last.
create or replace function holdfast.admit_lot(run_id uuid, clock timestamptz)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  lot constant jsonb := holdfast.take_lot(admit_lot.run_id, admit_lot.clock);
  run holdfast.runs;
begin
  if lot is null then
    return 0;
  end if;
  select r.* into run from holdfast.runs r where r.id = admit_lot.run_id;
  perform holdfast.count_lot(
    run, array(select f.id::bigint from jsonb_array_elements_text(lot -> 'fresh') f (id)), 0, (lot ->> 'taken')::int,
    (lot ->> 'reached')::bigint, (lot ->> 'is_last')::boolean, admit_lot.clock);
  return (lot ->> 'admitted')::int;
end
$$;
