-- Counts a run that ended: how long it took since it was queued or retried, and the share of its targets that
-- succeeded, of those that were tried. A run that was reopened only to read unknown outcomes is not counted.
create or replace function rules.count_end(facts rules.run_facts)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  run constant holdfast.runs := (select r from holdfast.runs r where r.id = facts.run_id);
  took constant bigint := greatest(0, floor(1000 * extract(epoch from coalesce(run.finished_at, clock)
                                                             - coalesce(facts.opened_at, run.queued_at))));
  rate constant numeric := 100.0 * run.succeeded / nullif(run.succeeded + run.failed, 0);
begin
  if facts.is_settling then
    return;
  end if;
  insert into rules.figures as g (tenant, channel, slot, ended, duration_ms, durations, success_rate, rated_at)
  values (facts.tenant, facts.channel, pg_backend_pid(), 1, took,
          jsonb_build_object(rules.duration_bucket(took), 1), rate, case when rate is not null then clock end)
  on conflict (tenant, channel, slot) do update
    set ended = g.ended + 1, duration_ms = g.duration_ms + excluded.duration_ms,
        durations = rules.added(g.durations, excluded.durations),
        success_rate = coalesce(excluded.success_rate, g.success_rate),
        rated_at = coalesce(excluded.rated_at, g.rated_at);
end
$$;
