-- Settles claimed steps by an array of objects with step_id, lease_id, outcome (done, retry, fail, snooze, continue,
-- release) and, where they apply, result, error, retry_after, pause, cursor, cursor_was and is_tried. `pause`, on a
-- retry or snooze, names a limit that is closed for all workers until retry_after. A release returns the step's tokens
-- unless it is_tried. A retry may name a `policy` and the `ordinal` of its failure, which set the delay, and with
-- `is_charged` false it uses no try. A snooze with a `call_key` shares calls only with steps of that key. `alone` keeps
-- the step out of shared calls from then on. `raised_with` is the first step of a call that failed as a whole: a
-- breaker counts it once. Returns the settled steps. A step whose lease is no longer the caller's is omitted, and
-- nothing of it is written.
create or replace function holdfast.settle_steps(outcomes jsonb)
returns setof holdfast.settled_step
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_outcomes(settle_steps.outcomes);
  return query
  select b.*
    from (select array_agg(o.step_id) filter (where o.outcome = 'done') as step_ids,
                 array_agg(o.lease_id) filter (where o.outcome = 'done') as lease_ids,
                 array_agg(coalesce(o.result, 'null')) filter (where o.outcome = 'done') as results
            from jsonb_to_recordset(settle_steps.outcomes) o (step_id bigint, lease_id bigint,
                                                              outcome text, result jsonb)) d,
         lateral holdfast.settle_batch(
           coalesce(d.step_ids, '{}'), coalesce(d.lease_ids, '{}'), coalesce(d.results, '{}'),
           jsonb_path_query_array(settle_steps.outcomes, '$[*] ? (@.outcome != "done")')) b;
end
$$;
grant execute on function holdfast.settle_steps to hf_worker;
