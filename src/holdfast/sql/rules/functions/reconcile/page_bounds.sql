-- Returns the last target of each page of a run: about 10,000 targets per page, in the order of their ids. A run's
-- targets got their ids one after the other, so equal parts of the range are equal pages, unless others took ids in
-- between. It looks up one target per page: the settle that ends a run calls it, and holds the run's row.
create or replace function rules.page_bounds(run_id uuid)
returns bigint[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
  pages constant int := greatest(1, (select (p.targets + 9999) / 10000 from rules.plans p
                                      where p.run_id = page_bounds.run_id));
  first constant bigint := (select n.step_id from holdfast.run_steps n
                             where n.run_id = page_bounds.run_id order by n.step_id limit 1);
  last constant bigint := (select n.step_id from holdfast.run_steps n
                            where n.run_id = page_bounds.run_id order by n.step_id desc limit 1);
  bounds bigint[] := '{}';
  bound bigint;
begin
  for page in 1 .. pages loop
    bound := (select n.step_id from holdfast.run_steps n
               where n.run_id = page_bounds.run_id and n.step_id <= first - 1 + (last - first + 1) * page / pages
               order by n.step_id desc limit 1);
    if bound is distinct from bounds[cardinality(bounds)] then  -- else nobody's targets are in between
      bounds := bounds || bound;
    end if;
  end loop;
  return bounds;
end
$$;
