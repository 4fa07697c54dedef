-- Targets whose price was found not to be what we wrote, with what the newest finding says. `is_current`: the last pass
-- over the run that ended found it. Amounts are in minor units; `difference` is actual less expected.
create or replace view rules.mismatches with (security_invoker = true) as
select x.run_id as rule_run_id, x.step_id as target_id, v.item_id, x.currency, x.expected, x.expected_compare_at,
       x.actual, x.actual_compare_at, x.actual_currency, x.difference, w.first_seen_at, x.at as last_seen_at, w.seen,
       coalesce(a.no >= (select max(b.no) from rules.passes b join holdfast.runs r on r.id = b.pass_id
                          where b.run_id = x.run_id and r.state = 'done'), true) as is_current,
       a.no as last_pass, a.channel, a.tenant as tenant_id
  from rules.findings x
  join rules.passes a on a.pass_id = x.pass_id
  join rules.target_values v on v.step_id = x.step_id
 cross join lateral (
   select min(y.at) as first_seen_at, count(*)::int as seen, max(b.no) as last_no
     from rules.findings y join rules.passes b on b.pass_id = y.pass_id
    where y.run_id = x.run_id and y.step_id = x.step_id and y.finding = 'mismatch') w
 where x.finding = 'mismatch' and a.no = w.last_no
   and coalesce(a.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on rules.mismatches to hf_producer, hf_worker, hf_reader, hf_operator;
