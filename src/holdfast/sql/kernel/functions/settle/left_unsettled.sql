-- Returns those of the done steps that are still under their lease but did not move, as outcomes for settle_others:
-- their machine requires a move in between, or their result is too large.
create or replace function holdfast.left_unsettled(step_ids bigint[], lease_ids bigint[], results jsonb[])
returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object(
             'step_id', u.step_id, 'lease_id', u.lease_id, 'outcome', 'done', 'result', u.result)), '[]')
      from unnest(left_unsettled.step_ids, left_unsettled.lease_ids,
                  left_unsettled.results) u (step_id, lease_id, result)
     cross join lateral (  -- offset 0: one by one and by primary key, whatever the statistics say
       select from holdfast.steps h where h.id = u.step_id and h.lease_id = u.lease_id offset 0) s);
end
$$;
