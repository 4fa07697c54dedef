-- Whether the kernel itself parks and unparks steps for that reason: `handler` (no live worker serves the kind), `move`
-- (the machine lacks a move) or `limit` (reserved for limits that are used up). The only definition; PostgreSQL inlines
-- it.
create or replace function holdfast.is_kernels_parking(parked_for text)
returns boolean
language sql immutable
begin atomic
  select is_kernels_parking.parked_for in ('handler', 'move', 'limit');
end;
