-- What every worker does now and then, whoever comes first: rescues steps from silent workers, goes on with runs whose
-- steps are being moved in chunks, makes partitions. Tells what it did. A `worker` that names itself is seen, with what it
-- now says of itself (`about`, as in enlist_worker), if its row is the login's to touch.
create or replace function holdfast.upkeep(batch int default 1000, worker text default null, about jsonb default null)
returns table (rescued bigint, moved bigint, partitions int)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  run record;
begin
  perform holdfast.check_name('worker', upkeep.worker);
  perform holdfast.check_about(upkeep.about);
  -- First: what follows wants to be journaled.
  upkeep.partitions := case when holdfast.partitions_ahead() < interval '350 days' then holdfast.make_partitions() else 0 end;
  select count(*) into upkeep.rescued from holdfast.rescue_steps(upkeep.batch);
  upkeep.moved := 0;
  for run in
    select r.id, r.moving from holdfast.runs r where r.moving is not null order by r.id limit 10 for update skip locked
  loop
    perform holdfast.act('system', 'upkeep', 'the run was ' || run.moving);
    upkeep.moved := upkeep.moved + holdfast.move_run_steps(run.id, upkeep.batch);
    perform holdfast.act();
  end loop;
  -- Last and without waiting: a claim of the same worker has its row first and waits for runs that are locked here.
  update holdfast.workers w
     set seen_at = holdfast.clock(), state = coalesce(upkeep.about ->> 'state', w.state), about = coalesce(upkeep.about, w.about)
   where w.worker = upkeep.worker and holdfast.is_own_worker(w.tenants, holdfast.allowed_tenants())
     and w.queue = any (array(select o.queue from holdfast.workers o where o.worker = upkeep.worker for update skip locked));
  delete from holdfast.workers w where w.seen_at < holdfast.clock() - interval '1 day';
  delete from holdfast.reserved_ids r where r.reserved_at < holdfast.clock() - interval '1 day';
  return next;
end
$$;
