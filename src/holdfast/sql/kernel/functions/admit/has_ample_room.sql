-- Whether limits take `steps` more holders and `tokens` at that time for certain, without a look at a queue: nothing is
-- parked on them, none is paused, and no breaker is open. False if a state is not there. The time may be before others
-- were charged. Then what the bucket has got since that time is left out of account, so that a charge at that time
-- takes nothing that came after it.
create or replace function holdfast.has_ample_room(ids bigint[], steps int, tokens numeric, at timestamptz)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  return (
    select count(*) = cardinality(has_ample_room.ids)  -- guard: present
           and bool_and(
             true
             and t.parked = 0 and t.wake_at is null  -- guard: queue
             and t.open_until is null  -- guard: breaker
             and (greatest(t.paused_until, r.paused_until) > has_ample_room.at) is not true  -- guard: pause
             and (t.held + has_ample_room.steps > r.concurrency) is not true  -- guard: slots
             and (t.bucket_at > has_ample_room.at) is not true  -- guard: bucket; else nothing of it is given back
             and (holdfast.bucket_level(t.tokens, t.filled_at, r.rate, r.per, r.burst,
                                        greatest(t.filled_at, has_ample_room.at))
                  - ceil(r.rate * greatest(0, extract(epoch from t.filled_at - has_ample_room.at))  -- guard: since
                         / extract(epoch from r.per))
                  < has_ample_room.tokens) is not true  -- guard: tokens
           )
      from holdfast.limit_states t
      left join lateral holdfast.limit_rule(t.name, t.tenant) r on true
     where t.id = any (has_ample_room.ids));
end
$$;
