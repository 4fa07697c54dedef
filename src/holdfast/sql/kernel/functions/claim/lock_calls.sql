-- Locks due steps by whole calls, and returns them in their order with the numbers of their calls, which follow
-- `called`. Each of `heads` is a step of a key (its kind, tenant, batch_key and limits) whose calls have up to `sizes`
-- steps: of this key come the first `counts` due steps. A head of size 1 is a call of its own. There are at most
-- `wanted` steps in at most `most` calls (null: any number). The first call that does not fit ends the claim
-- (`is_over`), unless the claim has nothing yet (`is_empty`): then it is cut to what fits. The key's first due step is
-- its lock: if another claim has it, that claim takes the key. Steps that run alone are not for a shared call. It reads
-- a bounded number of steps that name other limits, and no key after the first call that does not fit. All keys are
-- read and locked together, because small ones would cost several statements per step.
create or replace function holdfast.lock_calls(
  heads bigint[], counts int[], sizes int[], queue text, priority int, wanted int, most int, clock timestamptz,
  called int, is_empty boolean, taken bigint[])
returns holdfast.call_pick
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_nestloop = off  -- but for lateral joins, which have no other plan
set enable_hashjoin = on
set jit = off
as $$
declare
  answer holdfast.call_pick := ('{}', '{}', '{}', false);
  has_runs boolean := false;
  last_call int := lock_calls.called;
  next int := 1;  -- the first head that was not looked at
  room int;
  left_calls int;
  had bigint[];
  ids bigint[];
  places int[];  -- of the head of each
  are_of_runs boolean;
  numbers int[];
  firsts bigint[];  -- of each key
  fitting int;
  cut_at int;  -- the head whose calls do not all fit
  last_place int;  -- of which a step was locked
  rest bigint[];
  locked bigint[];
begin
  while next <= cardinality(lock_calls.heads) loop
    room := lock_calls.wanted - cardinality(answer.ids);
    left_calls := coalesce(lock_calls.most, 1000000000) - (last_call - lock_calls.called);
    answer.is_over := room <= 0 or left_calls <= 0;
    exit when answer.is_over;
    had := lock_calls.taken || answer.ids;
    select coalesce(array_agg(c.id), '{}'), array_agg(c.place), count(c.run_id) > 0 into ids, places, are_of_runs
      from (select d.id, d.run_id, u.place::int as place
              from unnest(lock_calls.heads, lock_calls.counts, lock_calls.sizes)
                   with ordinality u (head, count, size, place)
             cross join lateral (select h.kind, h.tenant, h.batch_key, h.limits, h.run_id
                                   from holdfast.steps h where h.id = u.head offset 0) k
             cross join lateral (
               select u.head as id, k.run_id where u.size = 1
               union all
               select o.id, o.run_id
                 from (select w.id, w.run_id
                         from (select d.id, d.run_id, d.limits, d.kind, d.tenant, d.batch_key, d.alone
                                 from holdfast.steps d
                                where d.queue = lock_calls.queue and d.priority = lock_calls.priority
                                  and d.limited_by is null
                                  and hashtextextended(d.kind || E'\n' || d.tenant || E'\n' || d.batch_key, 0)
                                      = hashtextextended(k.kind || E'\n' || k.tenant || E'\n' || k.batch_key, 0)
                                  and d.batch_key is not null
                                  -- not `due_at is not null`: the planner would use the index of due steps
                                  and (d.due_at is not null or d.limited_by is not null)
                                  and coalesce(d.due_at, d.parked_due_at) <= lock_calls.clock
                                -- As the index has them, or all steps of the key would be read and sorted: under
                                -- row-level security the planner does not see that the digest is the same for all.
                                order by d.limited_by,
                                         hashtextextended(d.kind || E'\n' || d.tenant || E'\n' || d.batch_key, 0),
                                         coalesce(d.due_at, d.parked_due_at), d.id
                                limit 4 * u.count + cardinality(had) + 1000) w
                        where w.kind = k.kind and w.tenant = k.tenant and w.batch_key = k.batch_key
                          and w.limits is not distinct from k.limits
                          and w.alone is null  -- guard: alone
                          and w.id not in (select t.id from unnest(had) t (id))  -- a join need not keep the order
                        limit least(u.count, left_calls::bigint * u.size)) o
                where u.size > 1) d
             where u.place >= next and u.place - next < left_calls
             order by u.place
             limit room + 1) c;
    with unit as (
      select p.place, count(*)::int as steps, lock_calls.sizes[p.place] as size,
             ((count(*) + lock_calls.sizes[p.place] - 1) / lock_calls.sizes[p.place])::int as calls
        from unnest(places) p (place)
       group by p.place),
    counted as (
      select u.*, (sum(u.steps) over so_far - u.steps)::int as steps_before,
             (sum(u.calls) over so_far - u.calls)::int as calls_before
        from unit u
      window so_far as (order by u.place)),
    fitted as materialized (
      select c.*,
             case
               when c.steps_before + c.steps <= room and c.calls_before + c.calls <= left_calls then c.steps
               when c.steps_before = 0 and room < c.size and lock_calls.is_empty and answer.ids = '{}' then room
               else c.size * greatest(0, least((room - c.steps_before) / c.size,  -- guard: whole
                                               left_calls - c.calls_before))
             end as fits
        from counted c)
    select coalesce(sum(f.fits), 0), min(f.place) filter (where f.fits < f.steps),
           coalesce(array_agg(ids[f.steps_before + 1]) filter (where f.fits > 0), '{}'),
           array(select last_call + n.calls_before + (g.step - 1) / n.size + 1
                   from fitted n cross join lateral generate_series(1, n.fits) g (step)
                  order by n.place, g.step)
      into fitting, cut_at, firsts, numbers
      from fitted f;
    ids := ids[1 : fitting];
    places := places[1 : fitting];
    last_place := places[fitting];
    locked := holdfast.lock_due(firsts, lock_calls.clock);  -- guard: key
    rest := ids;
    if cardinality(locked) < cardinality(firsts) then
      rest := array(
        select s.id
          from unnest(ids, places) s (id, place)
         where s.place in (select f.place from unnest(ids, places) f (id, place)
                             join unnest(locked) l (id) on l.id = f.id));
    end if;
    if cardinality(rest) > cardinality(locked) then
      locked := holdfast.lock_due(rest, lock_calls.clock);
    end if;
    if cardinality(locked) < fitting then  -- the others have the rest
      select coalesce(array_agg(s.id order by s.nth), '{}'), coalesce(array_agg(s.number order by s.nth), '{}'),
             max(s.place)
        into ids, numbers, last_place
        from (select u.id, u.place, u.nth, (last_call + dense_rank() over (order by u.number))::int as number
                from unnest(ids, places, numbers) with ordinality u (id, place, number, nth)
                join unnest(locked) l (id) on l.id = u.id) s;
    end if;
    answer.ids := answer.ids || ids;
    answer.calls := answer.calls || numbers;
    last_call := coalesce(numbers[cardinality(numbers)], last_call);
    has_runs := has_runs or are_of_runs;
    if cut_at is null then
      next := next + left_calls;
    elsif cardinality(ids) = fitting then  -- guard: others
      answer.is_over := true;
      exit;
    else  -- there is room for more, because others have some of the steps
      next := cut_at + (places[fitting] = cut_at and last_place is distinct from cut_at)::int;
    end if;
  end loop;
  if has_runs then
    answer.run_ids := array(select distinct s.run_id from holdfast.steps s
                             where s.id = any (answer.ids) and s.run_id is not null);
  end if;
  return answer;
end
$$;
