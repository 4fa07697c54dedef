-- Whether the facts of a run fit together: a status that we know, a worker and a start for what was claimed, an end for
-- what is over, and times in their order. The CHECK constraint of ops.run_facts calls it. As five constraints the same
-- rules took 7 % of a claim: the server parses the text of a constraint again with every statement.
create or replace function ops.is_sound(
  status text, claimed_by text, queued_at timestamptz, started_at timestamptz, running_at timestamptz,
  finished_at timestamptz)
returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return status in ('queued', 'claimed', 'running', 'success', 'failed', 'cancelled')
    and (status <> 'queued' or num_nonnulls(claimed_by, started_at, finished_at) = 0)
    and (claimed_by is null) = (started_at is null)
    and (claimed_by is not null or status in ('queued', 'cancelled'))
    and (finished_at is null) = (status in ('queued', 'claimed', 'running'))
    -- a time that is missing is not out of order
    and coalesce(queued_at <= started_at, true) and coalesce(started_at <= running_at, true)
    and coalesce(coalesce(started_at, queued_at) <= finished_at, true);
end
$$;
