-- Tells workers that sleep that a schedule changed, by an empty hint: no queue has an empty name.
create or replace function holdfast.wake_for_schedules()
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
begin
  if exists (select from holdfast.workers w where w.is_asleep and holdfast.is_live_worker(w.seen_at, clock)) then
    perform pg_notify('holdfast', '');
  end if;
end
$$;
