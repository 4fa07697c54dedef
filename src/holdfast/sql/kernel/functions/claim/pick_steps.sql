-- Locks and returns the first `wanted` due steps of one priority that the worker may take, and their runs. It continues
-- where the worker's last full batch ended: under a held snapshot the dead index entries before that position cannot be
-- removed, and walking over them with each claim makes a long drain slow. It starts from the beginning at the end of
-- the index, and at least every second. A limited worker picks by windows (pick_served). `taken` are steps that the
-- claim already has.
create or replace function holdfast.pick_steps(
  worker text, queue text, priority int, kinds text[], tenants text[], machine text, wanted int,
  clock timestamptz, taken bigint[] default '{}')
returns holdfast.pick
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  place constant text := format('%s %s %s', pick_steps.worker, pick_steps.queue, pick_steps.priority);
  after holdfast.due_position := holdfast.position_of(place, pick_steps.clock);
  seen int;
  passed bigint[];
  last holdfast.due_position;
  pick holdfast.pick;
  kept text;
begin
  loop
    -- No distinct aggregate: it would sort the rows, and the next claim continues after the last of them.
    select coalesce(array_agg(p.id) filter (where p.is_served), '{}'), array_agg(p.id) filter (where not p.is_served),
           coalesce(array_agg(p.run_id) filter (where p.is_served and p.run_id is not null), '{}'),
           count(*), max(p.due_at), (array_agg(p.id))[count(*)]
      into pick.ids, passed, pick.run_ids, seen, last.due_at, last.id
      from (select d.id, d.run_id, d.due_at,
                   holdfast.matches_any(pick_steps.kinds, d.kind)
                   and holdfast.matches_any(pick_steps.tenants, d.tenant)
                   and holdfast.matches(pick_steps.machine, d.machine) as is_served
              from holdfast.steps d
             where d.queue = pick_steps.queue and d.priority = pick_steps.priority
               and holdfast.is_due(d, pick_steps.clock)  -- guard: due
               and (d.due_at, d.id) > (after.due_at, after.id)
               and d.id <> all (pick_steps.taken)
             order by d.due_at, d.id
             limit pick_steps.wanted
               for update skip locked  -- guard: lock
           ) p;
    exit when seen = pick_steps.wanted or after.id = 0;
    after := holdfast.position_of(null, pick_steps.clock);
  end loop;
  if passed is not null then
    perform holdfast.park_unserved(pick_steps.queue, passed, pick_steps.clock);
    if seen = pick_steps.wanted then
      select pick.ids || array(select u.id from unnest(s.picked) u (id) where u.id <> all (pick_steps.taken)),
             (s.reached).due_at, (s.reached).id into pick.ids, last.due_at, last.id
        from holdfast.pick_served(pick_steps.queue, pick_steps.priority, pick_steps.kinds, pick_steps.tenants,
                                  pick_steps.machine, pick_steps.wanted - cardinality(pick.ids),
                                    pick_steps.clock, last) s;
      pick.run_ids := array(select distinct s.run_id from holdfast.steps s
                             where s.id = any (pick.ids) and s.run_id is not null);
    end if;
  end if;
  if seen = pick_steps.wanted then
    kept := holdfast.keep_position(place, last, pick_steps.clock);
  end if;
  return pick;
end
$$;
