-- The queues in which steps are parked on a limit, each with the charge of its first step. It steps from one queue to
-- the next by the index, however many steps are parked.
create or replace function holdfast.parked_queues(limit_id bigint)
returns table (queue text, charge numeric)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
begin
  return query
  with recursive parked as (
    (select p.queue
       from holdfast.steps p
      where p.limited_by = parked_queues.limit_id and coalesce(p.parked_for, '') = 'limit'
      order by p.queue
      limit 1)
    union all
    select n.queue
      from parked b
     cross join lateral (
       select p.queue
         from holdfast.steps p
        where p.limited_by = parked_queues.limit_id and p.queue > b.queue and coalesce(p.parked_for, '') = 'limit'
        order by p.queue
        limit 1) n)
  select b.queue, coalesce(h.charge, 1)::numeric
    from parked b
   cross join lateral (
     select p.charge
       from holdfast.steps p
      where p.limited_by = parked_queues.limit_id and p.queue = b.queue and coalesce(p.parked_for, '') = 'limit'
      order by p.priority desc, p.parked_due_at, p.id
      limit 1) h;
end
$$;
