-- Whether a due time is in range: its year has four digits. PostgreSQL inlines it.
create or replace function holdfast.is_in_reach(due_at timestamptz)
returns boolean
language sql immutable
begin atomic
  -- A day inside the table's constraint, whose bounds depend on the time zone of the session that made it.
  select is_in_reach.due_at between timestamptz '1900-01-02 00:00:00+00' and timestamptz '9998-12-31 00:00:00+00';
end;
