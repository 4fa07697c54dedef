-- Returns the time in a run's id, in milliseconds: by it the prunings of a run are found.
create or replace function holdfast.place_of(run_id uuid)
returns bigint
language sql immutable
begin atomic
  select ('x' || lpad(left(replace(place_of.run_id::text, '-', ''), 12), 16, '0'))::bit(64)::bigint;
end;
