-- Locks and returns the first due steps of one priority that the worker may take, in whole calls: steps of a kind and
-- tenant with the same batch_key and limits share one, up to the kind's `batch`; any other step is a call of its own.
-- There are at most `wanted` steps in at most `most` calls (null: any number), which are numbered after `called`. It
-- ends before a call that does not fit into what is left, unless the claim has nothing yet (`is_empty`): a call that is
-- larger than the whole claim is cut to what fits. Due steps are read in windows without locking them, because a
-- claim must not lock a part of a key that another claim takes. The windows grow, and at once if the first of them has
-- steps of one key only. `taken` are steps that the claim already has.
create or replace function holdfast.pick_calls(
  worker text, queue text, priority int, kinds text[], tenants text[], machine text, wanted int, most int,
  clock timestamptz, called int, is_empty boolean, taken bigint[] default '{}')
returns holdfast.call_pick
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  place constant text := format('%s %s %s', pick_calls.worker, pick_calls.queue, pick_calls.priority);
  window_size int := least(greatest(least(pick_calls.wanted, 2::bigint * pick_calls.most), 50), 500);
  reached holdfast.due_position := holdfast.position_of(place, pick_calls.clock);
  is_from_front boolean := reached.id = 0;
  answer holdfast.call_pick := ('{}', '{}', '{}', false);
  had bigint[] := pick_calls.taken;
  last_call int := pick_calls.called;
  seen bigint[];
  dues timestamptz[];
  is_one_key boolean;
  heads bigint[];
  counts int[];
  sizes int[];
  passed bigint[];
  locked holdfast.call_pick;
begin
  for _ in 1 .. 20 loop
    loop
      select array_agg(w.id), array_agg(w.due_at),
             min(w.batch_key) = max(w.batch_key) and min(w.kind) = max(w.kind) and min(w.tenant) = max(w.tenant)
             and min(w.machine) = max(w.machine)
             and count(w.batch_key) = count(*) and count(w.alone) = 0
             and count(w.limits) in (0, count(*)) and min(w.limits) is not distinct from max(w.limits)
        into seen, dues, is_one_key
        from (select d.id, d.due_at, d.batch_key, d.kind, d.tenant, d.machine, d.limits, d.alone
                from holdfast.steps d
               where d.queue = pick_calls.queue and d.priority = pick_calls.priority
                 and holdfast.is_due(d, pick_calls.clock)
                 and (d.due_at, d.id) > (reached.due_at, reached.id)
               order by d.due_at, d.id
               limit window_size) w;
      -- The calls of one key are locked together, because a second lock of a key reads what the first one has locked.
      exit when is_one_key is not true or cardinality(seen) < window_size or window_size >= pick_calls.wanted;
      window_size := pick_calls.wanted;
    end loop;
    select coalesce(array_agg(u.head) filter (where c.is_served), '{}'),
           coalesce(array_agg(u.head) filter (where not c.is_served), '{}'),
           array_agg(u.count) filter (where c.is_served), array_agg(c.size) filter (where c.is_served)
      into heads, passed, counts, sizes
      from holdfast.call_units(seen, had, pick_calls.kinds, pick_calls.tenants, pick_calls.machine,
                               coalesce(is_one_key, false)) c
     cross join lateral (  -- whole calls for the steps that were seen, filled up with later steps of the key
       select c.ids[1] as head, (cardinality(c.ids) + c.size - 1) / c.size * c.size as count
        where c.is_served and c.size > 1
       union all
       select i.id, 1 from unnest(c.ids) i (id) where not c.is_served or c.size = 1) u;
    locked := holdfast.lock_calls(
      heads, counts, sizes, pick_calls.queue, pick_calls.priority, pick_calls.wanted - cardinality(answer.ids),
      pick_calls.most - (last_call - pick_calls.called), pick_calls.clock, last_call,
      pick_calls.is_empty and answer.ids = '{}', had);
    answer := (answer.ids || locked.ids, answer.calls || locked.calls, answer.run_ids || locked.run_ids,
               locked.is_over);
    last_call := coalesce(locked.calls[cardinality(locked.calls)], last_call);
    had := had || locked.ids;
    if passed <> '{}' then
      perform holdfast.park_unserved(pick_calls.queue, passed, pick_calls.clock);
    end if;
    if answer.is_over or cardinality(answer.ids) = pick_calls.wanted
       or last_call - pick_calls.called = pick_calls.most then
      exit;
    elsif cardinality(seen) = window_size then
      reached := (dues[window_size], seen[window_size]);
      window_size := greatest(window_size, least(2 * window_size, 1000));
    else
      exit when is_from_front;
      is_from_front := true;
      reached := holdfast.position_of(null, pick_calls.clock);
    end if;
  end loop;
  perform holdfast.remember_reached(place, reached, seen, dues, had, pick_calls.clock);
  return answer;
end
$$;
