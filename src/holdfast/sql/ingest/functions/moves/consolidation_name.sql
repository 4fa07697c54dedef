-- Returns the name of the step that consolidates a run for the nth time.
create or replace function ingest.consolidation_name(round int)
returns text
language sql immutable
begin atomic
  select case when consolidation_name.round <= 1 then 'consolidate' else 'consolidate-' || consolidation_name.round end;
end;
