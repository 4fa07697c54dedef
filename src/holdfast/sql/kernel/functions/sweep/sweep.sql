-- Does one chunk of retention, if one is due: removes up to `batch` tasks, or steps of whole runs, that are over for
-- longer than their rule keeps them, in one transaction. Any worker calls it from time to time; `wait` says when to
-- call again. It acts for all tenants. Only one session sweeps at a time: for the others `is_through` is null.
-- `months` is how many months of the journal are to be dropped by drop_month, in a transaction of its own.
create or replace function holdfast.sweep(batch int default 1000)
returns table (steps bigint, runs bigint, keys bigint, ticks bigint, months int, is_through boolean, wait interval)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query select c.* from holdfast.sweep_chunk(sweep.batch, false) c;
end
$$;
grant execute on function holdfast.sweep to hf_worker;
