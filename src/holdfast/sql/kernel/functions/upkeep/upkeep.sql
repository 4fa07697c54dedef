-- Does what some worker must do from time to time: rescues steps from silent workers, continues to move the steps of
-- cancelled and retried runs in chunks, makes partitions. Returns what it did, for all tenants; if that is anything,
-- more may be left. With `worker` it also records that the worker is alive, with its new `about` (as in enlist_worker),
-- if the login may change its row.
create or replace function holdfast.upkeep(batch int default 1000, worker text default null, about jsonb default null)
returns table (rescued bigint, moved bigint, partitions int)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select u.rescued, u.moved, u.partitions
    from holdfast.measured_upkeep(upkeep.worker, upkeep.about, upkeep.batch) u;
end
$$;
grant execute on function holdfast.upkeep to hf_worker;
