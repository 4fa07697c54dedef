-- Keeps where a claim by whole calls ended, for the worker's next claim: before the first of the steps that it saw last
-- and did not take. `reached` is where those begin.
create or replace function holdfast.remember_reached(
  place text, reached holdfast.due_position, seen bigint[], dues timestamptz[], taken bigint[], clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_nestloop = off
set enable_hashjoin = on
set jit = off
as $$
declare
  first constant int := (
    select min(u.place) from unnest(remember_reached.seen) with ordinality u (id, place)
     where not exists (select from unnest(remember_reached.taken) t (id) where t.id = u.id));
  last constant int := coalesce(first - 1, cardinality(remember_reached.seen), 0);
begin
  if last > 0 then
    perform holdfast.keep_position(
      remember_reached.place, (remember_reached.dues[last], remember_reached.seen[last]), remember_reached.clock);
  elsif remember_reached.reached.id > 0 then
    perform holdfast.keep_position(remember_reached.place, remember_reached.reached, remember_reached.clock);
  else
    perform set_config('holdfast.position', '', false);
  end if;
end
$$;
