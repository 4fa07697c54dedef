-- Admits the first lot of a run whose steps have just been added, unless somebody else is about to. The caller has
-- called set_actor.
create or replace function holdfast.admit_first_lot(run_id uuid, clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if exists (select from holdfast.runs r where r.id = admit_first_lot.run_id and r.to_admit > 0)
     -- Not waiting: the run's row is locked, and whoever has the lock may wait for it.
     and pg_try_advisory_xact_lock(holdfast.run_lock(admit_first_lot.run_id)) then
    perform holdfast.admit_lot(admit_first_lot.run_id, admit_first_lot.clock);
  end if;
end
$$;
