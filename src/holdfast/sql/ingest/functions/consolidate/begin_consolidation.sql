-- Begins the consolidation of a run under a step that the caller holds: freezes the pricing rules, cuts the run's
-- records that are not consolidated into ranges of the feed's `batch` (2 000), and adds a step per range, for which the
-- caller's step waits. Returns how many. Call it in the transaction that settles the step as continued.
create or replace function ingest.begin_consolidation(step_id bigint, lease_id bigint)
returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  held record;
  ranges jsonb;
begin
  held := ingest.held_consolidation(begin_consolidation.step_id, begin_consolidation.lease_id);
  update ingest.run_facts r
     set pricing = (select coalesce(jsonb_agg(jsonb_build_object(
                             'priority', p.priority, 'criteria', p.criteria, 'markup', p.markup::text,
                             'rating', p.rating) order by p.priority), '[]')
                      from ingest.prices p where p.feed = (held.facts).feed)
   where r.run_id = (held.facts).run_id;
  select jsonb_agg(jsonb_build_object(
           'name', format('batch-%s-%s', (held.facts).rounds, c.part + 1),
           'kind', format('ingest:%s:batch', (held.facts).feed),
           'input', ingest.with_trace(jsonb_build_object('batch', jsonb_build_object(
             'first', c.first, 'last', c.last, 'rows', c.rows)), (held.facts).trace_id)) order by c.part)
    into ranges
    from (select n.part, min(n.key) as first, max(n.key) as last, count(*) as rows
            from (select s.key, (row_number() over (order by s.key) - 1)
                                / coalesce(((held.feed).settings ->> 'batch')::int, 2000) as part
                    from ingest.sightings s
                   where s.feed_id = (held.feed).id and not s.consolidated and s.seen_no = (held.facts).no) n
           group by n.part) c;
  if ranges is null then
    return 0;
  end if;
  return holdfast.add_awaited(begin_consolidation.step_id, begin_consolidation.lease_id, ranges);
end
$$;
grant execute on function ingest.begin_consolidation to hf_worker;
