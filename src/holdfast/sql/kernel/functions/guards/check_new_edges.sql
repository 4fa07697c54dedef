-- The INSERT trigger of edges: an edge joins two steps of one run and makes no cycle. Ids ascend in the order of the
-- plan, so an edge normally leads to a higher id. Every cycle has an edge that does not, and the search starts only
-- from those. An edge that the kernel inserts has a new step at one end, so a new cycle goes back at one of the new
-- edges. An edge by hand may close a cycle that goes back at an old edge, which then follows a new one: the rest of the
-- run is not read.
create or replace function holdfast.check_new_edges()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
-- one lookup per step, whatever the statistics say: linear in the steps that follow the new edges
set enable_hashjoin = off
set enable_mergejoin = off
set enable_seqscan = off
set jit = off
as $$
declare
  is_by_hand constant boolean := coalesce(current_setting('holdfast.actor_kind', true), '') = '';
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
      select n.next_id from n where is_by_hand
      union
      select e.next_id from later l join holdfast.edges e on e.step_id = l.id
    ),
    turns as (
      select n.step_id, n.next_id from n where n.step_id > n.next_id
      union
      select d.step_id, d.next_id
        from later l join holdfast.edges d on d.next_id = l.id and d.step_id > l.id
       where d.step_id in (select c.id from later c)
    )
    select t.next_id as begins, array_agg(t.step_id) as ends from turns t group by t.next_id
  loop
    with recursive reached (id) as (
      select turn.begins
      union
      select e.next_id from reached r join holdfast.edges e on e.step_id = r.id
    )
    select r.id into found_at from (select x.id from reached x intersect select unnest(turn.ends)) r limit 1;
    if found_at is not null then
      perform holdfast.refuse('RN006', format('steps %s and %s would wait for each other', turn.begins, found_at),
                              'remove one of the edges between them');
    end if;
  end loop;
  return null;
end
$$;
