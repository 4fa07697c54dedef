-- Returns the event that closes a run without live steps, by its counts. Steps that its face left out do not count.
-- Steps that were not tried count as not succeeded if the run has a window or was stopped; otherwise they wait for a
-- step that failed, and the run is blocked.
create or replace function holdfast.closing_event(run holdfast.runs)
returns text
language sql immutable
begin atomic
  select case when run.total > run.succeeded + run.failed + run.cancelled
                   and run.window_size is null and run.halt is distinct from 'stopped' then 'blocked'
              when run.succeeded >= run.total - run.left_out then 'all_succeeded'  -- guard: all
              when run.succeeded > 0 then 'some_failed'
              else 'none_succeeded' end;
end;
