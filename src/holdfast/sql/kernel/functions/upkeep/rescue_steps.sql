-- Takes up to `batch` steps from workers whose lease ran out, the oldest leases first; null takes all of them, in one
-- transaction. A step is retried, or fails if its tries are used up or its policy does not retry. Any worker may call
-- it at any time: it rescues the steps of all tenants and returns those of the login's own.
create or replace function holdfast.rescue_steps(batch int default 100)
returns setof holdfast.settled_step
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
  chunk constant int := 1000;
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  expired bigint[];
begin
  if rescue_steps.batch is not null then
    return query
    select e.* from holdfast.expire_leases(rescue_steps.batch, clock) e
     where allowed is null
        or exists (select from holdfast.steps s where s.id = e.step_id and s.tenant = any (allowed));
    return;
  end if;
  -- By run: chunk after chunk locks runs in ascending order, as a single settle does.
  expired := array(select s.id from holdfast.steps s where s.lease_until < clock order by s.run_id nulls first, s.id);
  for start in 1 .. cardinality(expired) by chunk loop
    return query
    select e.* from holdfast.expire_steps(
      array(select s.id from holdfast.steps s
             -- it may have been renewed by now
             where s.id = any (expired[start : start + chunk - 1]) and s.lease_until < clock
               for update skip locked),
      clock) e
     where allowed is null
        or exists (select from holdfast.steps s where s.id = e.step_id and s.tenant = any (allowed));
  end loop;
end
$$;
grant execute on function holdfast.rescue_steps to hf_worker;
