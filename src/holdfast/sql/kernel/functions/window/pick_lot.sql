-- Returns the next steps of a run to admit, at most `room`, up to which step it has looked, and whether no more are
-- left. It reads on until it has found so many: after a retry the steps that succeeded lie between them. `to_admit`
-- says when the last one is found, unless the run's face chooses the steps.
create or replace function holdfast.pick_lot(
  run holdfast.runs, room int, out ids bigint[], out reached bigint, out is_last boolean)
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
  is_counted constant boolean := run.admits = 'chosen' or not exists (
    select from holdfast.machines c where c.machine = run.machine and c.admits is not null);
  -- After a retry it may have to pass over many.
  size constant int := case when run.admits = 'untried' then pick_lot.room + 1 else greatest(1000, pick_lot.room) end;
  seen bigint[];
  fresh bigint[];
begin
  ids := '{}';
  reached := run.admitted_until;
  loop
    seen := holdfast.next_to_admit(run, reached, size);
    fresh := array(
      select u.id
        from unnest(seen) with ordinality u (id, place)
       cross join lateral (select h.* from holdfast.steps h where h.id = u.id offset 0) s
       where s.run_id = run.id and holdfast.is_admissible(s, run.admits <> 'untried')
       order by u.place);
    is_last := cardinality(seen) < size and cardinality(ids) + cardinality(fresh) <= pick_lot.room;
    ids := ids || fresh[1 : pick_lot.room - cardinality(ids)];
    if is_counted and cardinality(ids) >= run.to_admit then
      is_last := true;
    end if;
    reached := case when cardinality(ids) = pick_lot.room then ids[pick_lot.room]
                    else coalesce(seen[cardinality(seen)], reached) end;
    exit when is_last or cardinality(ids) >= pick_lot.room;
  end loop;
  if not is_last and run.first_left is null then
    fresh := holdfast.rest_of_key(run, reached);  -- guard: key
    ids := ids || fresh;
    reached := coalesce(fresh[cardinality(fresh)], reached);
  end if;
end
$$;
