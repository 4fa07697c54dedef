-- Rule runs, in the document's words. `counts` has targets, included, applied, failed, unknown (of those that failed:
-- nobody knows whether they were written), left (included and not over), unchanged, refused and rolledBack; a rolled
-- back target counts as applied too.
create or replace view rules.rule_runs with (security_invoker = true) as
select f.run_id as id, f.tenant as tenant_id, f.project_id, f.rule_id, f.channel, f.source, r.state as status,
       f.metadata, p.plan_hash, f.expires_at,
       jsonb_build_object(
         'targets', p.targets, 'included', f.included, 'applied', r.succeeded, 'failed', r.failed,
         'unknown', f.unknown,
         'left', greatest(f.included - r.succeeded - r.failed, 0), 'unchanged', p.unchanged, 'refused', p.refused,
         'rolledBack', f.rolled_back)
         as counts,
       holdfast.error_text(f.error) as error,
       r.queued_at, r.started_at, r.finished_at, r.of_run as parent_run_id, f.rule_version,
       coalesce(f.reason, r.halt_reason) as reason, r.created_at, p.plan, r.halt
  from rules.run_facts f
  join rules.plans p on p.run_id = f.run_id
  join holdfast.runs r on r.id = f.run_id
 where coalesce(f.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
-- Writes are granted so that they reach the trigger, whose error names the function to call.
grant select, insert, update, delete on rules.rule_runs to hf_producer, hf_worker, hf_reader, hf_operator;
