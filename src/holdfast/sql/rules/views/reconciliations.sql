-- Passes of reconciliation. `total_checked` counts the applied targets that were considered; superseded ones (a later
-- run wrote the item) and unverifiable ones (they could not be read) are among them and do not count as mismatches.
-- `accuracy` is the share of the others that show what was written, in percent. Unknown outcomes are counted apart.
create or replace view rules.reconciliations with (security_invoker = true) as
select a.run_id, a.no, a.pass, a.pass_id, r.state as status, c.total_checked, c.mismatches, c.superseded,
       c.unverifiable, c.unknown,
       round(100 - 100.0 * c.mismatches / nullif(c.total_checked - c.superseded - c.unverifiable, 0), 2) as accuracy,
       a.channel, a.due_at, r.started_at, r.finished_at, a.corrects, a.correction as correction_run_id,
       a.tenant as tenant_id
  from rules.passes a
  join holdfast.runs r on r.id = a.pass_id
 cross join lateral (
   select coalesce(sum(p.checked), 0)::int as total_checked, coalesce(sum(p.mismatches), 0)::int as mismatches,
          coalesce(sum(p.superseded), 0)::int as superseded, coalesce(sum(p.unverifiable), 0)::int as unverifiable,
          coalesce(sum(p.unknown), 0)::int as unknown
     from rules.pass_parts p where p.pass_id = a.pass_id) c
 where coalesce(a.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on rules.reconciliations to hf_producer, hf_worker, hf_reader, hf_operator;
