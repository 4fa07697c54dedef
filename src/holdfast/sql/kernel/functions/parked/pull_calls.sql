-- Locks steps that are parked on limits in whole calls: each of the steps `heads` with the others of its key that are
-- parked on the same limit, so many that the calls are full. The key's first step is its lock, as in lock_calls: if
-- another claim has it, the key is left to that claim. There are at most `wanted` steps. A call that does not fit into
-- what is left ends the claim, unless the claim has nothing yet (`is_empty`): then it is cut to what fits.
create or replace function holdfast.pull_calls(
  heads bigint[], queue text, priority int, wanted int, is_empty boolean, taken bigint[])
returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_nestloop = on
set enable_sort = on
set jit = off
as $$
declare
  answer bigint[] := '{}';
  unit record;
  step holdfast.steps;
  own bigint[];
  room int;
begin
  for unit in
    select c.ids, c.size from holdfast.call_units(pull_calls.heads, '{}', null, null, null) c
  loop
    room := pull_calls.wanted - cardinality(answer);
    exit when room <= 0;
    if unit.size = 1 then
      answer := answer || holdfast.lock_parked(unit.ids[1 : room]);
      continue;
    end if;
    select s.* into step from holdfast.steps s where s.id = unit.ids[1];
    own := array(
      select w.id
        from (select d.id, d.limits, d.kind, d.tenant, d.batch_key, d.alone
                from holdfast.steps d
               where d.queue = pull_calls.queue and d.priority = pull_calls.priority and d.limited_by = step.limited_by
                 and hashtextextended(d.kind || E'\n' || d.tenant || E'\n' || d.batch_key, 0)
                     = hashtextextended(step.kind || E'\n' || step.tenant || E'\n' || step.batch_key, 0)
                 and d.batch_key is not null and (d.due_at is not null or d.limited_by is not null)
               order by hashtextextended(d.kind || E'\n' || d.tenant || E'\n' || d.batch_key, 0),  -- see lock_calls
                        coalesce(d.due_at, d.parked_due_at), d.id
               limit 4 * unit.size + 1000) w
       where w.kind = step.kind and w.tenant = step.tenant and w.batch_key = step.batch_key
         and w.limits is not distinct from step.limits and w.alone is null
         and w.id <> all (pull_calls.taken)
       limit (cardinality(unit.ids) + unit.size - 1) / unit.size * unit.size);
    continue when own = '{}' or holdfast.lock_parked(own[1 : 1]) = '{}';  -- guard: key
    own := own[1 : 1] || holdfast.lock_parked(own[2 :]);
    if cardinality(own) > room then  -- guard: whole
      return answer || own[1 : case when room >= unit.size then room / unit.size * unit.size
                                    when pull_calls.is_empty and answer = '{}' then room
                                    else 0 end];
    end if;
    answer := answer || own;
  end loop;
  return answer;
end
$$;
