-- Charges the limits of steps that were leased just now without waiting for the limits: each step is under all of
-- them and takes 1. The trigger of steps has counted the steps, so their states are locked. Raises
-- serialization_failure if the limits do not take the steps for certain: the caller takes the leases back.
create or replace function holdfast.charge_last(ids bigint[], steps int, at timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  -- Another statement than the one that waited for the locks: it sees what those committed who had them before.
  if not holdfast.has_ample_room(charge_last.ids, 0, charge_last.steps, charge_last.at) then  -- guard: certain
    raise exception using errcode = 'serialization_failure',
      message = format('limits %s may not take %s steps', charge_last.ids, charge_last.steps);
  end if;
  update holdfast.limit_states t
     set tokens = holdfast.bucket_level(t.tokens, t.filled_at, r.rate, r.per, r.burst,
                                        greatest(t.filled_at, charge_last.at)) - charge_last.steps,
         filled_at = greatest(t.filled_at, charge_last.at), bucket_at = coalesce(t.bucket_at, charge_last.at)
    from holdfast.limit_states o
   cross join lateral holdfast.limit_rule(o.name, o.tenant) r
   where t.id = any (charge_last.ids) and o.id = t.id and r.rate is not null;
end
$$;
