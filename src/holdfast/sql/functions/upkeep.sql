-- What every worker does now and then, whoever comes first: rescues steps from silent workers, goes on with runs whose
-- steps are being moved in chunks, makes partitions. Tells what it did.
create or replace function holdfast.upkeep(batch int default 1000)
returns table (rescued bigint, moved bigint, partitions int)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  run record;
begin
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
  delete from holdfast.workers w where w.seen_at < holdfast.clock() - interval '1 day';
  return next;
end
$$;
