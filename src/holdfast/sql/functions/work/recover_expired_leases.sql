-- Takes up to `batch` steps back from workers whose lease ran out, the longest silent first: to be tried again, or over when
-- their tries are used up. Gives how many.
create or replace function work.recover_expired_leases(batch int default 100)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return (select count(*) from holdfast.rescue_steps(recover_expired_leases.batch));
end
$$;
