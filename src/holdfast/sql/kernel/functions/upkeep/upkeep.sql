-- What every worker does now and then, whoever comes first: rescues steps from silent workers, goes on with runs whose
-- steps are being moved in chunks, makes partitions. Returns what it did, for all tenants; while that is anything, more
-- may be left. A `worker` that names itself is seen, with what it now says of itself (`about`, as in enlist_worker), if
-- its row is the login's to touch.
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
