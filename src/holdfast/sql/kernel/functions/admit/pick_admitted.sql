-- The first `wanted` steps of one priority that the worker may take under their limits, as pick_steps finds them and
-- after those whose limits kept them waiting. What a limit refuses is parked, window by window, so that it delays
-- nothing behind it; a claim looks at a bounded number of windows. The first time in a transaction it waits for limits
-- that others have locked. After that it does not: two that hold some limits each would wait for each other. Steps of
-- runs that are over take nothing from a limit; prepare_runs cancels them, after the limits are locked. `ended_ids` is
-- null if none of the steps is of a run.
create or replace function holdfast.pick_admitted(
  worker text, queue text, priority int, kinds text[], tenants text[], machine text, wanted int,
  clock timestamptz, free int default null)
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
begin
  answer.ids := '{}';
  answer.holds := '{}';
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
      missing, answer.full_ids, taken, pick_admitted.clock);
    pick := null;
    if cardinality(pulled) < missing then
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
      coalesce(current_setting('holdfast.has_limits', true), '') <> 'yes', pick_admitted.free - answer.tight);
    perform set_config('holdfast.has_limits', 'yes', true);
    if answer.ids = '{}' then
      answer.shared := turn.shared;
    elsif turn.ids <> '{}' then  -- no longer the same for all
      answer.holds := answer.holds
        || coalesce((select jsonb_object_agg(u.id, answer.shared::text) from unnest(answer.ids) u (id)
                      where answer.shared is not null), '{}')
        || coalesce((select jsonb_object_agg(u.id, turn.shared::text) from unnest(turn.ids) u (id)
                      where turn.shared is not null), '{}');
      answer.shared := null;
    end if;
    answer.holds := answer.holds || coalesce(turn.holds, '{}');
    answer.ids := answer.ids || turn.ids;
    answer.charges := answer.charges || coalesce(turn.charges, '{}');
    answer.full_ids := answer.full_ids || turn.full_ids;
    answer.left_ids := answer.left_ids || turn.left_ids;
    answer.at := turn.at;
    pending := pending || turn.pending;
    missing := missing - cardinality(turn.ids);
    answer.tight := answer.tight + coalesce(turn.tight, 0);
    exit when missing <= 0 or (pick_admitted.free <= answer.tight and turn.left_ids <> '{}')
           or (turn.refused = 0 and turn.left_ids = '{}' and pulled = '{}');
  end loop;
  if answer.left_ids <> '{}' then
    perform set_config('holdfast.position', '', false);  -- they are before it, and to be seen by the next claim
  end if;
  if not has_runs then
    answer.ended_ids := null;
  end if;
  return answer;
end
$$;
