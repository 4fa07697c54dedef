-- The edges' INSERT trigger: an edge joins two steps of one run, and no cycle is made. Ids are given out in the order of the
-- plan, so an edge normally leads to a higher id; each cycle has an edge that does not, and only from those it is looked for. A
-- new cycle goes through a new edge, so all its steps come after one: the rest of the run is not read.
create or replace function holdfast.check_new_edges()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_hashjoin = off   -- step by step and by key, whatever the statistics say: linear in what comes after the new edges
set enable_mergejoin = off
set enable_seqscan = off
as $$
declare
  stray bigint;
  turn record;
  found_at bigint;
begin
  select min(n.next_id) filter (where a.run_id is distinct from b.run_id or b.run_id is null) into stray
    from n
    left join holdfast.steps a on a.id = n.step_id
    left join holdfast.steps b on b.id = n.next_id;
  if stray is not null then
    perform holdfast.refuse('RN005', format('step %s would wait for a step that is not in its run', stray),
                            'an edge joins two steps of one run');
  end if;
  for turn in
    with recursive later (id) as (
      select n.next_id from n
      union
      select e.next_id from later l join holdfast.edges e on e.step_id = l.id
    )
    select d.next_id as begins, array_agg(d.step_id) as ends
      from later l join holdfast.edges d on d.next_id = l.id and d.step_id > l.id
     where d.step_id in (select c.id from later c)
     group by d.next_id
  loop
    with recursive reached (id) as (
      select turn.begins
      union
      select e.next_id from reached r join holdfast.edges e on e.step_id = r.id
    )
    select r.id into found_at from (select x.id from reached x intersect select unnest(turn.ends)) r limit 1;
    if found_at is not null then
      perform holdfast.refuse('RN006', format('steps %s and %s would wait for each other', turn.begins, found_at),
                              'take one of the edges between them away');
    end if;
  end loop;
  return null;
end
$$;
