-- The edges' INSERT trigger: refuses a cycle. Ids are given out in the order of the plan, so an edge normally leads to a
-- higher id and no cycle is possible; each cycle has a descending edge, and only from those it is looked for.
create or replace function holdfast.check_new_edges()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  turn record;
  found_at bigint;
begin
  for turn in
    select d.next_id as begins, array_agg(d.step_id) as ends
      from holdfast.edges d
     where d.step_id > d.next_id
       and (d.next_id in (select n.next_id from n where n.step_id > n.next_id)
            or exists (select from n join holdfast.steps a on a.id = n.step_id
                                     join holdfast.steps b on b.id = d.next_id
                        where a.run_id = b.run_id))
     group by d.next_id
  loop
    with recursive reached (id) as (
      select turn.begins
      union
      select e.next_id from reached r join holdfast.edges e on e.step_id = r.id
    )
    select r.id into found_at from reached r where r.id = any (turn.ends) limit 1;
    if found_at is not null then
      perform holdfast.refuse('RN006', format('steps %s and %s would wait for each other', turn.begins, found_at),
                              'take one of the edges between them away');
    end if;
  end loop;
  return null;
end
$$;
