-- Takes steps from workers whose lease ran out: all of them, or the `batch` oldest leases. A step is retried, or fails
-- if its tries are used up. Returns how many.
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
