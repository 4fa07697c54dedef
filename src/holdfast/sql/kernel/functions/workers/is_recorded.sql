-- Whether a worker's row says what the worker asks for now, and is not old. The only definition; PostgreSQL inlines it.
create or replace function holdfast.is_recorded(
  entry holdfast.workers, kinds text[], tenants text[], machine text, clock timestamptz)
returns boolean
language sql immutable
begin atomic
  select (is_recorded.entry).seen_at > is_recorded.clock - interval '10 s'
     and (is_recorded.entry).kinds is not distinct from is_recorded.kinds
     and (is_recorded.entry).tenants is not distinct from is_recorded.tenants
     and (is_recorded.entry).machine is not distinct from is_recorded.machine;
end;
