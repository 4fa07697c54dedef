-- Admits more steps of the runs that lack them, as take_lots does, counts them at once and returns how many.
create or replace function holdfast.admit_lots(clock timestamptz)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return holdfast.count_lots(holdfast.take_lots(admit_lots.clock), admit_lots.clock);
end
$$;
