-- A build for bench/sections/cost.py, never a switch of the product: every move is checked and none is written down.
create or replace function holdfast.journal_step_moves()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_hashjoin = on
set enable_seqscan = on
set enable_nestloop = off
set enable_mergejoin = off
set jit = off
as $$
declare
  announced constant text := nullif(current_setting('holdfast.actor_kind', true), '');
begin
  -- As an aggregate, so that each row is looked at and none is sent anywhere.
  perform count(case when m.to_state = n.state and announced = any (m.actors) then n.state
                     else holdfast.refuse_move(n.machine, o.state, n.last_event, n.state, announced, n.id::text) end)
     from o
     join n on n.id = o.id
     left join holdfast.machine_moves m on m.machine = o.machine and m.from_state = o.state and m.event = n.last_event
    where o.state <> n.state or o.lease_id is distinct from n.lease_id;
  return null;
end
$$;
