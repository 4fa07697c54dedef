-- Does upkeep and returns figures for a worker's metrics with it, so that they cost an idle worker no statement of
-- their own: the steps that upkeep failed because their tries were used up, by kind, and the due steps per queue of
-- `worker`. It counts at most `most` steps per queue; with 0 none.
create or replace function holdfast.measured_upkeep(
  worker text, about jsonb default null, batch int default 1000, most int default 0)
returns table (rescued bigint, moved bigint, partitions int, exhausted jsonb, backlog jsonb)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  given_up bigint[];
begin
  perform holdfast.check_name('worker', measured_upkeep.worker);
  perform holdfast.check_about(measured_upkeep.about);
  -- First: the moves below need a partition to be journaled in.
  measured_upkeep.partitions := case when holdfast.partitions_ahead() < interval '350 days'
                                     then holdfast.make_partitions() else 0 end;
  select count(*), array_agg(r.step_id) filter (where r.event = 'failed') into measured_upkeep.rescued, given_up
    from holdfast.expire_leases(measured_upkeep.batch, holdfast.clock()) r;
  measured_upkeep.moved := holdfast.move_next_chunk(measured_upkeep.batch);
  perform holdfast.admit_lots(holdfast.clock());  -- the safety net: claims do this
  -- Last and without waiting: a claim of the same worker locks its row first, then waits for runs locked here.
  update holdfast.workers w
     set seen_at = holdfast.clock(), state = coalesce(measured_upkeep.about ->> 'state', w.state),
         about = coalesce(measured_upkeep.about, w.about)
   where w.worker = measured_upkeep.worker and holdfast.is_own_worker(w.tenants, allowed)
     and w.queue = any (array(
           select o.queue from holdfast.workers o where o.worker = measured_upkeep.worker for update skip locked));
  delete from holdfast.workers w where w.seen_at < holdfast.clock() - interval '1 day';
  delete from holdfast.reserved_ids r where r.reserved_at < holdfast.clock() - interval '1 day';
  perform holdfast.forget_idle_limits(measured_upkeep.batch);
  measured_upkeep.exhausted := coalesce(
    (select jsonb_object_agg(k.kind, k.steps)
       from (select s.kind, count(*) as steps
               from holdfast.steps s
              where s.id = any (given_up) and holdfast.matches_any(allowed, s.tenant)
              group by s.kind) k), '{}');
  measured_upkeep.backlog := coalesce(
    (select jsonb_object_agg(w.queue, holdfast.backlog(w.queue, measured_upkeep.most))
       from holdfast.workers w
      where w.worker = measured_upkeep.worker and measured_upkeep.most > 0), '{}');
  return next;
end
$$;
grant execute on function holdfast.measured_upkeep to hf_worker;
