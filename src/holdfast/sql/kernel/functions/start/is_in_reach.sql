-- Whether a due time can be kept: in a year of four digits. It is put into a query as it stands.
create or replace function holdfast.is_in_reach(due_at timestamptz)
returns boolean
language sql immutable
begin atomic
  -- A day within the table's constraint, which was read in the time zone of whoever made it.
  select is_in_reach.due_at between timestamptz '1900-01-02 00:00:00+00' and timestamptz '9998-12-31 00:00:00+00';
end;
