-- The first `wanted` steps of one priority that the worker may take under their limits, as pick_steps finds them and
-- after those whose limits kept them waiting. What a limit refuses is parked, window by window, so that it delays
-- nothing behind it; a claim looks at a bounded number of windows. The first time in a transaction it waits for limits
-- that others have locked. After that it does not: two that hold some limits each would wait for each other. Steps of
-- runs that are over take nothing from a limit; prepare_runs cancels them, after the limits are locked. `ended_ids` is
-- null if none of the steps is of a run. If `is_batched`, steps come in calls (pick_calls), at most `most` of them, and
-- `is_empty` says that the claim has none yet. A claim that `charges_last` may get steps that are not charged yet
-- (`is_charged_last`). Steps of runs are not among them: limits are locked before runs.
create or replace function holdfast.pick_admitted(
  worker text, queue text, priority int, kinds text[], tenants text[], machine text, wanted int,
  clock timestamptz, free int default null, most int default null, is_batched boolean default false,
  is_empty boolean default true, charges_last boolean default false)
returns holdfast.admission
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  answer holdfast.admission;
  turn holdfast.admission;
  pulled bigint[];
  fresh bigint[];
  ended bigint[];
  taken bigint[];
  pending bigint[] := '{}';
  missing int := pick_admitted.wanted;
  pick holdfast.pick;
  has_runs boolean := false;
  charged_at timestamptz;
  has_several boolean;  -- some step is under more than one limit
  formed holdfast.call_pick;
  calls int := pick_admitted.most;  -- that are left
begin
  answer.ids := '{}';
  answer.pair_steps := '{}';
  answer.pair_limits := '{}';
  answer.charges := '{}';
  answer.left_ids := '{}';
  answer.ended_ids := '{}';
  answer.tight := 0;
  answer.full_ids := '{}';
  answer.at := pick_admitted.clock;
  for round in 1 .. 20 loop
    taken := answer.ids || answer.left_ids || answer.ended_ids;
    pulled := holdfast.pull_parked(
      pick_admitted.queue, pick_admitted.priority, pick_admitted.kinds, pick_admitted.tenants, pick_admitted.machine,
      case when pick_admitted.is_batched then least(missing, calls) else missing end, answer.full_ids, taken,
      pick_admitted.clock, pick_admitted.is_batched);
    pick := null;
    if pick_admitted.is_batched then
      if pulled <> '{}' then
        pulled := holdfast.pull_calls(pulled, pick_admitted.queue, pick_admitted.priority, missing,
                                      pick_admitted.is_empty and answer.ids = '{}', taken);
      end if;
      if cardinality(pulled) < missing then
        formed := holdfast.pick_calls(
          pick_admitted.worker, pick_admitted.queue, pick_admitted.priority, pick_admitted.kinds,
          pick_admitted.tenants, pick_admitted.machine, missing - cardinality(pulled),
          calls - (select count(distinct c.call)::int from unnest(holdfast.number_calls(pulled)) c (call)),
          pick_admitted.clock, 0, pick_admitted.is_empty and answer.ids = '{}' and pulled = '{}', taken || pulled);
        pick := (formed.ids, formed.run_ids);
      end if;
    elsif cardinality(pulled) < missing then
      pick := holdfast.pick_steps(
        pick_admitted.worker, pick_admitted.queue, pick_admitted.priority, pick_admitted.kinds, pick_admitted.tenants,
        pick_admitted.machine,
        case when round = 1 then missing - cardinality(pulled) else greatest(1000, 2 * missing) end,
        pick_admitted.clock, taken);
    end if;
    fresh := pulled || coalesce(pick.ids, '{}');
    exit when fresh = '{}';
    ended := '{}';
    if pulled <> '{}' or pick.run_ids <> '{}' then
      has_runs := true;
      ended := holdfast.of_ended_runs(fresh);
    end if;
    if ended <> '{}' then
      answer.ended_ids := answer.ended_ids || ended;
      fresh := array(select u.id from unnest(fresh) with ordinality u (id, place)
                      where u.id <> all (ended) order by u.place);
      continue when fresh = '{}';
    end if;
    turn := holdfast.admit_steps(
      pick_admitted.queue, pick_admitted.priority, fresh, missing, pending,
      coalesce(current_setting('holdfast.has_limits', true), '') <> 'yes', charged_at,
      pick_admitted.free - answer.tight, pick_admitted.is_batched,
      pick_admitted.charges_last and not pick_admitted.is_batched and not has_runs
      and coalesce(current_setting('holdfast.has_limits', true), '') <> 'yes');
    perform set_config('holdfast.has_limits', 'yes', true);
    charged_at := turn.at;  -- all that the claim takes is charged at one time, which is the steps' claimed_at
    if answer.ids = '{}' then
      answer.shared := turn.shared;
    elsif turn.ids <> '{}' and (answer.shared is not null or turn.shared is not null) then  -- not the same for all
      select answer.pair_steps || coalesce(array_agg(p.step_id), '{}'),
             answer.pair_limits || coalesce(array_agg(p.limit_id), '{}')
        into answer.pair_steps, answer.pair_limits
        from (select u.step_id, l.limit_id
                from unnest(answer.ids) u (step_id) cross join unnest(answer.shared) l (limit_id)
              union all
              select u.step_id, l.limit_id
                from unnest(turn.ids) u (step_id) cross join unnest(turn.shared) l (limit_id)) p;
      answer.shared := null;
    end if;
    answer.pair_steps := answer.pair_steps || turn.pair_steps;
    answer.pair_limits := answer.pair_limits || turn.pair_limits;
    answer.ids := answer.ids || turn.ids;
    answer.charges := answer.charges || coalesce(turn.charges, '{}');
    answer.full_ids := answer.full_ids || turn.full_ids;
    answer.left_ids := answer.left_ids || turn.left_ids;
    answer.at := turn.at;
    answer.is_charged_last := turn.is_charged_last;
    pending := pending || turn.pending;
    missing := missing - cardinality(turn.ids);
    if pick_admitted.is_batched then
      calls := calls - (
        select count(distinct c.call)::int
          from unnest(case when turn.ids = formed.ids then formed.calls  -- all of them: they are numbered already
                           else holdfast.number_calls(turn.ids) end) c (call));
    end if;
    answer.tight := answer.tight + coalesce(turn.tight, 0);
    exit when missing <= 0 or calls <= 0 or (pick_admitted.free <= answer.tight and turn.left_ids <> '{}')
           or (turn.refused = 0 and turn.left_ids = '{}' and pulled = '{}');
  end loop;
  if answer.pair_steps <> '{}' then
    select array_agg(p.step_id), array_agg(p.limit_id), bool_or(p.is_same) into answer.holders, answer.held, has_several
      from (select u.step_id, u.limit_id, u.step_id = lag(u.step_id) over (order by u.step_id) as is_same
              from unnest(answer.pair_steps, answer.pair_limits) u (step_id, limit_id)
             order by u.step_id) p;
    if has_several then
      select array_agg(p.step_id), array_agg(p.first) || cardinality(answer.held) + 1
        into answer.holders, answer.firsts
        from (select u.step_id, min(u.place)::int as first
                from unnest(answer.holders) with ordinality u (step_id, place)
               group by u.step_id
               order by u.step_id) p;
    end if;
  end if;
  if answer.left_ids <> '{}' then
    perform set_config('holdfast.position', '', false);  -- they are before it, and to be seen by the next claim
  end if;
  if not has_runs then
    answer.ended_ids := null;
  end if;
  return answer;
end
$$;
