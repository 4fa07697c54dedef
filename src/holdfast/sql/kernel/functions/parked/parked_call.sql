-- How many steps the first call of a limit's queue has, and what it is charged, where `head` is the first step of it:
-- the steps of its key that are parked on the same limit, at most as many as a call may have.
create or replace function holdfast.parked_call(head holdfast.steps, out steps int, out charge numeric)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
  kind record;
begin
  select k.batch, k.call_weight into kind
    from holdfast.kinds k
   where k.kind = head.kind and k.tenant in (head.tenant, '*')
   order by (k.tenant = '*')
   limit 1;
  select count(*), sum(coalesce(c.weight, 1)) + coalesce(kind.call_weight, 0) into parked_call.steps, parked_call.charge
    from (select w.weight
            from (select d.kind, d.tenant, d.batch_key, d.limits, d.alone, d.weight
                    from holdfast.steps d
                   where d.queue = head.queue and d.priority = head.priority and d.limited_by = head.limited_by
                     and hashtextextended(d.kind || E'\n' || d.tenant || E'\n' || d.batch_key, 0)
                         = hashtextextended(head.kind || E'\n' || head.tenant || E'\n' || head.batch_key, 0)
                     and d.batch_key is not null and (d.due_at is not null or d.limited_by is not null)
                   order by hashtextextended(d.kind || E'\n' || d.tenant || E'\n' || d.batch_key, 0),  -- see lock_calls
                            coalesce(d.due_at, d.parked_due_at), d.id
                   limit 4 * coalesce(kind.batch, 1) + 1000) w
           where w.kind = head.kind and w.tenant = head.tenant and w.batch_key = head.batch_key
             and w.limits is not distinct from head.limits and w.alone is null
           limit coalesce(kind.batch, 1)) c;
end
$$;
