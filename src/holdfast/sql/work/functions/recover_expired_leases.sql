-- Takes steps back from workers whose lease ran out, to be tried again, or over when their tries are used up: all of
-- them, or the `batch` longest silent. Gives how many.
create or replace function work.recover_expired_leases(batch int default null)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return (select count(*) from holdfast.rescue_steps(recover_expired_leases.batch));
end
$$;
grant execute on function work.recover_expired_leases to hf_worker;
