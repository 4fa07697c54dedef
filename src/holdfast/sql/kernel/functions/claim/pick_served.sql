-- Locks and returns up to `wanted` due steps after a position that a worker limited to some kinds, tenants or a machine
-- may take, and the position it reached. It reads due steps in windows, parks those that no worker serves and passes
-- over those that others serve. The number of windows is bounded, so that a claim never walks past an unbounded number
-- of steps that it may not take.
create or replace function holdfast.pick_served(
  queue text, priority int, kinds text[], tenants text[], machine text, wanted int, clock timestamptz,
  after holdfast.due_position,
  out picked bigint[], out reached holdfast.due_position)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  size constant int := greatest(1000, 2 * pick_served.wanted);
  seen bigint[];
  last_due timestamptz;
begin
  picked := '{}';
  reached := pick_served.after;
  for _ in 1 .. 20 loop
    select array_agg(w.id), max(w.due_at) into seen, last_due
      from (select d.id, d.due_at
              from holdfast.steps d
             where d.queue = pick_served.queue and d.priority = pick_served.priority
               and holdfast.is_due(d, pick_served.clock)
               and (d.due_at, d.id) > (reached.due_at, reached.id)
             order by d.due_at, d.id
             limit size) w;
    exit when seen is null;
    picked := picked || array(
      select d.id
        from holdfast.steps d
       where d.id = any (seen)
         and holdfast.is_due(d, pick_served.clock) is true  -- not bare: the planner would use the index of due steps
         and holdfast.matches_any(pick_served.kinds, d.kind)
         and holdfast.matches_any(pick_served.tenants, d.tenant)
         and holdfast.matches(pick_served.machine, d.machine)
       order by d.due_at, d.id
       limit pick_served.wanted - cardinality(picked)
         for update skip locked);
    exit when cardinality(picked) >= pick_served.wanted;
    perform holdfast.park_unserved(pick_served.queue, seen, pick_served.clock);
    reached := (last_due, seen[cardinality(seen)]);
    exit when cardinality(seen) < size;
  end loop;
end
$$;
