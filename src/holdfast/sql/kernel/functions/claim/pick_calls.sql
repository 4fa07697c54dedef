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
  window_size int := least(greatest(least(pick_calls.wanted, 4::bigint * pick_calls.most), 50), 1000);
  reached holdfast.due_position := holdfast.position_of(place, pick_calls.clock);
  is_from_front boolean := reached.id = 0;
  answer holdfast.call_pick := ('{}', '{}', '{}', false);
  had bigint[] := pick_calls.taken;
  last_call int := pick_calls.called;
  seen bigint[];
  dues timestamptz[];
  is_one_key boolean;
  is_of_runs boolean;
  may_have_runs boolean := false;  -- some step that was locked
  unit record;
  own bigint[];
  passed bigint[];
  room int;
  calls int;      -- that are left
  is_over boolean := false;
begin
  for _ in 1 .. 20 loop
    loop
      select array_agg(w.id), array_agg(w.due_at),
             min(w.batch_key) = max(w.batch_key) and min(w.kind) = max(w.kind) and min(w.tenant) = max(w.tenant)
             and min(w.machine) = max(w.machine)
             and count(w.batch_key) = count(*) and count(w.alone) = 0
             and count(w.limits) in (0, count(*)) and min(w.limits) is not distinct from max(w.limits),
             count(w.run_id) > 0
        into seen, dues, is_one_key, is_of_runs
        from (select d.id, d.due_at, d.run_id, d.batch_key, d.kind, d.tenant, d.machine, d.limits, d.alone
                from holdfast.steps d
               where d.queue = pick_calls.queue and d.priority = pick_calls.priority
                 and holdfast.is_due(d, pick_calls.clock)
                 and (d.due_at, d.id) > (reached.due_at, reached.id)
               order by d.due_at, d.id
               limit window_size) w;
      -- The calls of one key are locked together, because each lock of a key reads what it has locked before.
      exit when is_one_key is not true or cardinality(seen) < window_size or window_size >= pick_calls.wanted;
      window_size := pick_calls.wanted;
    end loop;
    may_have_runs := may_have_runs or is_of_runs;
    passed := '{}';
    for unit in
      select * from holdfast.call_units(
        seen, had, pick_calls.kinds, pick_calls.tenants, pick_calls.machine, coalesce(is_one_key, false))
    loop
      if not unit.is_served then
        passed := passed || unit.ids;
        continue;
      end if;
      room := pick_calls.wanted - cardinality(answer.ids);
      calls := coalesce(pick_calls.most, 2147483647) - (last_call - pick_calls.called);
      is_over := room <= 0 or calls <= 0;
      exit when is_over;
      if unit.size = 1 then
        own := holdfast.lock_due(unit.ids[1 : least(room, calls)], pick_calls.clock);
      else  -- whole calls for the steps that were seen, filled up with later steps of the key
        own := holdfast.lock_key(unit.ids[1], pick_calls.queue, pick_calls.priority,
                                 least((cardinality(unit.ids) + unit.size - 1) / unit.size, calls) * unit.size,
                                 pick_calls.clock, had);
        may_have_runs := may_have_runs or own <> unit.ids;  -- some were not in the window
        if cardinality(own) > room then  -- guard: whole
          is_over := true;
          own := own[1 : case when room >= unit.size then room / unit.size * unit.size
                              when pick_calls.is_empty and answer.ids = '{}' then room
                              else 0 end];
        end if;
      end if;
      answer.calls := answer.calls || array(
        select last_call + 1 + (n - 1) / unit.size from generate_series(1, cardinality(own)) n);
      last_call := last_call + (cardinality(own) + unit.size - 1) / unit.size;
      answer.ids := answer.ids || own;
      had := had || own;
      exit when is_over;
    end loop;
    if passed <> '{}' then
      perform holdfast.park_unserved(pick_calls.queue, passed, pick_calls.clock);
    end if;
    if is_over or cardinality(answer.ids) = pick_calls.wanted or last_call - pick_calls.called = pick_calls.most then
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
  answer.is_over := is_over;
  if may_have_runs then
    answer.run_ids := array(select distinct s.run_id from holdfast.steps s
                             where s.id = any (answer.ids) and s.run_id is not null);
  end if;
  return answer;
end
$$;
