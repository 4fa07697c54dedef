-- The queues in which steps are parked on a limit, each with the slots and the charge that its first call needs: those
-- of all its steps, or of the first one if it has more than `most_steps` or takes more than `most_charge`, because then
-- it is cut to what fits. It steps from one queue to the next by the index, however many steps are parked.
create or replace function holdfast.parked_queues(
  limit_id bigint, most_steps int default null, most_charge numeric default null)
returns table (queue text, slots int, charge numeric)
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
  select b.queue, case when n.is_whole then n.steps else 1 end,
         case when n.is_whole then n.charge else coalesce((h.head).charge, 1)::numeric end
    from parked b
   cross join lateral (
     select p as head
       from holdfast.steps p
      where p.limited_by = parked_queues.limit_id and p.queue = b.queue and coalesce(p.parked_for, '') = 'limit'
      order by p.priority desc, p.parked_due_at, p.id
      limit 1) h
    left join lateral (
     select c.steps, c.charge, c.steps <= coalesce(parked_queues.most_steps, 2147483647)
                               and (c.charge > parked_queues.most_charge) is not true as is_whole
       from holdfast.parked_call(h.head) c
      where (h.head).batch_key is not null and (h.head).alone is null
     offset 0) n on true;
end
$$;
