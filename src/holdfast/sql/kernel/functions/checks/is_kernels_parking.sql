-- Whether the kernel itself parks and unparks steps for that reason: `handler` (no live worker serves the kind), `move`
-- (the machine lacks a move), `limit` (a limit is used up) or `run <id>` (that run is paused). The only definition;
-- PostgreSQL inlines it.
create or replace function holdfast.is_kernels_parking(parked_for text)
returns boolean
language sql immutable
begin atomic
  select is_kernels_parking.parked_for in ('handler', 'move', 'limit')
      or starts_with(is_kernels_parking.parked_for, 'run ');
end;
