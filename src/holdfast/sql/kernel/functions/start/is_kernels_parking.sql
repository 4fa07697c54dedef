-- Whether the kernel itself parks and unparks steps for that: `handler` (no live worker serves the kind), `move` (the
-- machine lacks a move) or `limit` (kept for limits that are used up). The one definition; it is put into a query as it
-- stands.
create or replace function holdfast.is_kernels_parking(parked_for text)
returns boolean
language sql immutable
begin atomic
  select is_kernels_parking.parked_for in ('handler', 'move', 'limit');
end;
