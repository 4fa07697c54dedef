-- Returns why a run failed or was cancelled: what a person gave, else the error of its first failed step.
create or replace function ingest.reason_of(facts ingest.run_facts)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  failed record;
begin
  if current_setting('holdfast.actor_kind', true) in ('user', 'api', 'scheduler') then
    return nullif(current_setting('holdfast.reason', true), '');
  end if;
  select n.name, s.error into failed
    from holdfast.run_steps n
   cross join lateral (select h.* from holdfast.steps h where h.id = n.step_id offset 0) s
   where n.run_id = facts.run_id and s.state = 'failed'
   order by s.id desc limit 1;
  return case when facts.failed_workers > 0 and not facts.forced
              then format('%s of %s partitions failed; ', facts.failed_workers, facts.expected_workers) else '' end
         || coalesce(format('%s: %s', failed.name, holdfast.error_text(failed.error)), 'a step was cancelled');
end
$$;
