-- Fires `reopened` on those of the steps that are in an error state from which they can be claimed only after that, and
-- returns how many.
create or replace function holdfast.reopen_failed(ids bigint[])
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  reopened int;
begin
  update holdfast.steps s
     set state = m.to_state, last_event = 'reopened'
    from holdfast.machine_moves m
   where s.id = any (reopen_failed.ids)
     and m.machine = s.machine and m.from_state = s.state and m.event = 'reopened'
     and exists (select from holdfast.machine_moves c
                  where c.machine = s.machine and c.from_state = m.to_state and c.event = 'claimed')
     and not exists (select from holdfast.machine_moves c
                      where c.machine = s.machine and c.from_state = s.state and c.event = 'claimed');
  get diagnostics reopened = row_count;
  return reopened;
end
$$;
