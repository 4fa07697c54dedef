-- Returns the event that closes a run without live steps, by its counts.
create or replace function holdfast.closing_event(run holdfast.runs)
returns text
language sql immutable
begin atomic
  select case when run.total > run.succeeded + run.failed + run.cancelled then 'blocked'
              when run.succeeded = run.total then 'all_succeeded'
              when run.succeeded > 0 then 'some_failed'
              else 'none_succeeded' end;
end;
