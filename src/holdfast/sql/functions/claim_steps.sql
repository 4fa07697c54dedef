-- Hands up to `batch` due steps of `queue` to `worker`, each under a lease of its own. `kinds` names the handlers it has
-- (null: any), `lease` how long it may be silent (null: as the step's kind says, else 300 s).
create or replace function holdfast.claim_steps(
  worker text, queue text default 'default', kinds text[] default null, batch int default 1, lease interval default null,
  tenants text[] default null)
returns setof holdfast.claimed_step
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off     -- a plan made on an empty table must stay right after a bulk load
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  clock constant timestamptz := holdfast.clock();  -- once: a volatile call in a predicate is no index condition
  serves constant text[] := holdfast.narrow_tenants(claim_steps.tenants);
  wanted int := claim_steps.batch;
  top int;
  picked bigint[];
  run_ids uuid[];
begin
  perform holdfast.check_claim(claim_steps.worker, claim_steps.batch, claim_steps.lease);
  perform holdfast.greet_worker(claim_steps.worker, claim_steps.queue, claim_steps.kinds, serves, clock);
  select case when q.paused_at is null then q.top_priority else -1 end into top
    from holdfast.queues q where q.queue = claim_steps.queue;
  perform holdfast.act('worker', claim_steps.worker);
  for level in reverse coalesce(top, 9) .. 0 loop
    if claim_steps.kinds is null and serves is null then
      select coalesce(array_agg(p.id), '{}'), array_agg(distinct p.run_id) filter (where p.run_id is not null)
        into picked, run_ids
        from (select d.id, d.run_id
                from holdfast.steps d
               where d.queue = claim_steps.queue and d.priority = level and d.due_at <= clock
               order by d.due_at, d.id
               limit wanted
                 for update skip locked) p;
    else
      picked := holdfast.pick_served(claim_steps.queue, level, claim_steps.kinds, serves, wanted, clock);
      run_ids := array(select distinct s.run_id from holdfast.steps s where s.id = any (picked) and s.run_id is not null);
    end if;
    continue when picked = '{}';
    return query select * from holdfast.take_steps(picked, run_ids, claim_steps.worker, claim_steps.lease, clock);
    wanted := wanted - cardinality(picked);
    exit when wanted <= 0;
  end loop;
  perform holdfast.act();
end
$$;
