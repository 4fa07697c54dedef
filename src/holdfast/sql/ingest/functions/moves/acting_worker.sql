-- Returns the worker that makes the moves of this transaction; null if a person, a schedule or the upkeep does.
create or replace function ingest.acting_worker()
returns text
language sql stable
begin atomic
  select case when current_setting('holdfast.actor_kind', true) = 'worker'
              then current_setting('holdfast.actor', true) end;
end;
