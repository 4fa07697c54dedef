-- Locks held steps by their ids, and then the states of the limits that count them by theirs: for a settle that moves
-- its steps by more than one statement, which else would lock limits in no order.
create or replace function holdfast.lock_held(step_ids bigint[], others jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  ids constant bigint[] := lock_held.step_ids || array(
    select (o ->> 'step_id')::bigint from jsonb_array_elements(lock_held.others) o);
begin
  perform from holdfast.steps s where s.id = any (ids) order by s.id for update;
  perform from holdfast.limit_states t
    where t.id = any (array(
            select h.id from holdfast.steps s cross join unnest(s.holds) h (id) where s.id = any (ids)))
    order by t.id for update;
end
$$;
