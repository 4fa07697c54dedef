-- Settles steps as settle_batch does, for a transaction that is committed in the same message: raises, so that nothing
-- of it is committed, if one of the steps is no longer held under its lease, and with `must_progress` if a result or
-- cursor is too large to be stored.
create or replace function holdfast.settle_whole(
  step_ids bigint[], lease_ids bigint[], results jsonb[], others jsonb, must_progress boolean)
returns setof holdfast.settled_step
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  given constant integer := cardinality(step_ids) + jsonb_array_length(others);
  settled_ids bigint[];
  events text[];
  states text[];
  lost record;
begin
  select coalesce(array_agg(s.step_id), '{}'), array_agg(s.event), array_agg(s.state)
    into settled_ids, events, states
    from holdfast.settle_batch(settle_whole.step_ids, settle_whole.lease_ids, settle_whole.results,
                               settle_whole.others) s;
  if cardinality(settled_ids) < given then  -- guard: leases
    select g.step_id, g.lease_id into lost
      from (select u.step_id, u.lease_id
              from unnest(settle_whole.step_ids, settle_whole.lease_ids) u (step_id, lease_id)
            union all
            select (o.item ->> 'step_id')::bigint, (o.item ->> 'lease_id')::bigint
              from jsonb_array_elements(settle_whole.others) o (item)) g
     where g.step_id <> all (settled_ids)
     limit 1;
    if found then  -- else a step was given twice
      perform holdfast.refuse(
        'RN002', format('step %s is no longer held under lease %s, so its transaction was rolled back', lost.step_id,
                        lost.lease_id), 'stop working on it', lost.step_id::text);
    end if;
  end if;
  if settle_whole.must_progress and not (events <@ array['succeeded', 'continued']) then  -- guard: progress
    perform holdfast.refuse('RN011', 'the result or cursor has more than 1048576 bytes',
                            'store it elsewhere and return its location', 'result');
  end if;
  return query select u.id, u.event, u.state from unnest(settled_ids, events, states) u (id, event, state);
end
$$;
grant execute on function holdfast.settle_whole to hf_worker;
