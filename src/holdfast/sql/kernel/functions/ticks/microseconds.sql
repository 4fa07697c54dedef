-- Returns a time as microseconds since 1970, which no time zone or rounding changes.
create or replace function holdfast.microseconds(at timestamptz)
returns bigint
language sql immutable
begin atomic
  select (extract(epoch from microseconds.at) * 1000000)::bigint;
end;
