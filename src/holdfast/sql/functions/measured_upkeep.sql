-- Upkeep, and with it the figures of a worker's metrics, so that they cost an idle worker no statement of their own: the
-- steps that upkeep gave up because their tries were used up, by kind, and the steps that are due now in each queue of
-- `worker`. At most `most` steps are counted in a queue; with 0 none are.
create or replace function holdfast.measured_upkeep(
  worker text, about jsonb default null, batch int default 1000, most int default 0)
returns table (rescued bigint, moved bigint, partitions int, exhausted jsonb, backlog jsonb)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  made constant int := case when holdfast.partitions_ahead() < interval '350 days'
                            then holdfast.make_partitions() else 0 end;  -- first: what follows wants to be journaled
  own_rescues bigint;
  given_up bigint[];
begin
  select count(*), array_agg(r.step_id) filter (where r.event = 'failed') into own_rescues, given_up
    from holdfast.rescue_steps(measured_upkeep.batch) r;
  select own_rescues + u.rescued, u.moved, made + u.partitions
    into measured_upkeep.rescued, measured_upkeep.moved, measured_upkeep.partitions
    from holdfast.upkeep(measured_upkeep.batch, measured_upkeep.worker, measured_upkeep.about) u;
  measured_upkeep.exhausted := coalesce(
    (select jsonb_object_agg(k.kind, k.steps)
       from (select s.kind, count(*) as steps from holdfast.steps s where s.id = any (given_up) group by s.kind) k), '{}');
  measured_upkeep.backlog := coalesce(
    (select jsonb_object_agg(w.queue, holdfast.backlog(w.queue, measured_upkeep.most))
       from holdfast.workers w
      where w.worker = measured_upkeep.worker and measured_upkeep.most > 0), '{}');
  return next;
end
$$;
