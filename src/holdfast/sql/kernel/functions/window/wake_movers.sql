-- Tells workers, by an empty hint, that steps of a run are to be moved in chunks, if some are left. It is sent even if
-- no worker is asleep: one that is about to fall asleep would otherwise move them only at its next upkeep.
create or replace function holdfast.wake_movers(run_id uuid)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if exists (select from holdfast.runs r where r.id = wake_movers.run_id and r.moving is not null) then
    perform pg_notify('holdfast', '');
  end if;
end
$$;
