-- Why a run that its worker left is cancelled, in the words of the document: it was claimed and never started, or it
-- runs and nothing is heard of it.
create or replace function ops.stale_reason(status text, started_at timestamptz, clock timestamptz)
returns text
language sql immutable
begin atomic
  select case when stale_reason.status = 'running' then 'Stale run (running without heartbeat)'
              when stale_reason.started_at <= stale_reason.clock - interval '5 minutes'
                then 'Stale run (claimed for >5 minutes without events)'
              else 'Stale run (claimed without heartbeat)' end;
end;
