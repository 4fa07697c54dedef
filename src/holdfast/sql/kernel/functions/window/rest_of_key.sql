-- Returns the steps to admit that follow `after` and have the same batch key, as far as one call can take them: a lot
-- ends between two keys, so that a claim finds whole keys.
create or replace function holdfast.rest_of_key(run holdfast.runs, after bigint)
returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_nestloop = on
set enable_hashjoin = off
set enable_mergejoin = off
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  last holdfast.steps;
  size int;
begin
  select s.* into last from holdfast.steps s where s.id = rest_of_key.after;
  if last.batch_key is null then
    return '{}';
  end if;
  size := (select k.batch - 1 from holdfast.kinds k
            where k.kind = last.kind and k.tenant in (last.tenant, '*') order by k.tenant = '*' limit 1);
  if coalesce(size, 0) < 1 then
    return '{}';
  end if;
  return array(
    with next as materialized (
      select u.id, u.place, s.batch_key is distinct from last.batch_key or s.kind <> last.kind as is_other,
             holdfast.is_admissible(s, run.admits <> 'untried') as is_free
        from unnest(holdfast.next_to_admit(run, rest_of_key.after, size)) with ordinality u (id, place)
       cross join lateral (select h.* from holdfast.steps h where h.id = u.id offset 0) s)
    select n.id from next n
     where n.is_free and n.place < coalesce((select min(o.place) from next o where o.is_other), n.place + 1)
     order by n.place);
end
$$;
