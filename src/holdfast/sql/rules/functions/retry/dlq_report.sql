-- Reports the dead letter of the rules, of one project or of all, and changes nothing: how many targets failed and were
-- not dealt with, by class, how many are older than 24 hours, what to do about them, and the `most` oldest.
create or replace function rules.dlq_report(
  project_id text default null, most int default 1000, tenant text default null)
returns jsonb
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  report jsonb;
begin
  if dlq_report.most is null or dlq_report.most not between 0 and 100000 then
    perform holdfast.refuse('RN005', format('most must be 0 to 100000, got %s', dlq_report.most), 'use 1000', 'most');
  end if;
  with dead as materialized (
    select d.id, d.run_id, d.finished_at, d.error, d.failures, f.project_id, f.channel,
           rules.error_class(coalesce(d.error, '{}')) as class
      from holdfast.dead_steps d join rules.run_facts f on f.run_id = d.run_id
     where d.machine = 'rules.target' and holdfast.matches_any(allowed, d.tenant)
       and (dlq_report.tenant is null or d.tenant = dlq_report.tenant)
       and (dlq_report.project_id is null or f.project_id = dlq_report.project_id)),
  counted as (
    select d.class, count(*) as targets from dead d group by d.class),
  whole as (
    select count(*) as total, count(*) filter (where d.finished_at < clock - interval '24 hours') as older from dead d)
  select jsonb_build_object(
    'project', dlq_report.project_id, 'total', w.total, 'olderThan24h', w.older,
    'byClass', coalesce((select jsonb_object_agg(c.class, c.targets) from counted c), '{}'),
    'advice', rules.advice(coalesce((select jsonb_object_agg(c.class, c.targets) from counted c), '{}'), w.older),
    'entries', coalesce((
      select jsonb_agg(jsonb_build_object(
               'targetId', e.id, 'ruleRunId', e.run_id, 'itemId', v.item_id, 'channel', e.channel,
               'errorClass', e.class, 'reason', t.reason, 'error', holdfast.error_text(e.error),
               'attempts', greatest(e.failures - 1, 0), 'failedAt', e.finished_at,
               'retryable', rules.is_retryable(coalesce(e.error, '{}'))) order by e.finished_at, e.id)
        from (select d.* from dead d order by d.finished_at, d.id limit dlq_report.most) e
        left join rules.target_values v on v.step_id = e.id
        left join lateral (select r.reason from rules.rule_targets r  -- the one definition of it
                            where r.rule_run_id = e.run_id and r.id = e.id offset 0) t on true), '[]'))
    into report
    from whole w;
  return report;
end
$$;
grant execute on function rules.dlq_report to hf_operator;
