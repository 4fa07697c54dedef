-- Locks the first `wanted` due steps with the key of the step `of_step` (its kind, tenant, batch_key and limits) and
-- returns them in the order of their due times. The first of them is the key's lock: if another claim has it, that
-- claim takes the key, and nothing is returned. Steps that run alone are not for a shared call. It reads a bounded
-- number of steps that name other limits.
create or replace function holdfast.lock_key(
  of_step bigint, queue text, priority int, wanted int, clock timestamptz, taken bigint[])
returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_nestloop = off  -- what is joined has no index: a nested loop over it is quadratic
set enable_hashjoin = on
set enable_mergejoin = off
set jit = off
as $$
declare
  step holdfast.steps;
  ids bigint[];
  rest bigint[];
begin
  select s.* into step from holdfast.steps s where s.id = lock_key.of_step;
  ids := array(
    select w.id
      from (select d.id, d.limits, d.kind, d.tenant, d.batch_key, d.alone
              from holdfast.steps d
             where d.queue = lock_key.queue and d.priority = lock_key.priority and d.limited_by is null
               and hashtextextended(d.kind || E'\n' || d.tenant || E'\n' || d.batch_key, 0)
                   = hashtextextended(step.kind || E'\n' || step.tenant || E'\n' || step.batch_key, 0)
               and d.batch_key is not null
               -- not `due_at is not null`: the planner would use the index of due steps
               and (d.due_at is not null or d.limited_by is not null)
               and coalesce(d.due_at, d.parked_due_at) <= lock_key.clock
             -- As the index has them, or all steps of the key would be read and sorted: under row-level security the
             -- planner does not see that the digest is the same for all.
             order by d.limited_by, hashtextextended(d.kind || E'\n' || d.tenant || E'\n' || d.batch_key, 0),
                      coalesce(d.due_at, d.parked_due_at), d.id
             limit 4 * lock_key.wanted + cardinality(lock_key.taken) + 1000) w
     where w.kind = step.kind and w.tenant = step.tenant and w.batch_key = step.batch_key
       and w.limits is not distinct from step.limits
       and w.alone is null  -- guard: alone
     limit lock_key.wanted + cardinality(lock_key.taken));
  if lock_key.taken <> '{}' then  -- a statement of its own: the plan of a join need not keep the order
    ids := array(
      select u.id
        from unnest(ids) with ordinality u (id, place)
       where not exists (select from unnest(lock_key.taken) t (id) where t.id = u.id)
       order by u.place
       limit lock_key.wanted);
  end if;
  if ids = '{}' or holdfast.lock_due(ids[1 : 1], lock_key.clock) = '{}' then  -- guard: key
    return '{}';
  end if;
  rest := holdfast.lock_due(ids[2 :], lock_key.clock);
  if cardinality(rest) = cardinality(ids) - 1 then
    return ids;
  end if;
  return ids[1 : 1] || array(
    select u.id
      from unnest(ids[2 :]) with ordinality u (id, place)
      join unnest(rest) l (id) on l.id = u.id
     order by u.place);
end
$$;
