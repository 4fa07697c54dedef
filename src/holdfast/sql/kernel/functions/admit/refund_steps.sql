-- Gives the tokens back that steps took which were handed back untried. The caller has settled them just now: their
-- limits' states are locked. A bucket that is newer than the claim took nothing.
create or replace function holdfast.refund_steps(ids bigint[], clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  limit_ids bigint[];
begin
  with refund as (
    select h.limit_id, sum(coalesce(s.charge, 1)) filter (where s.claimed_at >= t.bucket_at) as charge
      from holdfast.steps s
     cross join unnest(s.holds) h (limit_id)
      join holdfast.limit_states t on t.id = h.limit_id
     where s.id = any (refund_steps.ids)
     group by h.limit_id),
  filled as (
    update holdfast.limit_states t
       set tokens = least(r.burst, holdfast.tokens_at(t, r, refund_steps.clock) + f.charge),
           filled_at = greatest(t.filled_at, refund_steps.clock)
      from refund f
      join holdfast.limit_states o on o.id = f.limit_id
     cross join lateral holdfast.limit_rule(o.name, o.tenant) r
     where t.id = f.limit_id and f.charge is not null and t.tokens is not null and r.rate is not null
    returning t.id)
  select array_agg(f.id) into limit_ids from filled f;
  perform holdfast.refresh_limits(limit_ids, refund_steps.clock);
end
$$;
