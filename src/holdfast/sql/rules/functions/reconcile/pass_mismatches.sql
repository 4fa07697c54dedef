-- Returns what a pass found so far, for the step that corrects it: prices that are not what was written, at most
-- `most`, with the rule of their run.
create or replace function rules.pass_mismatches(step_id bigint, lease_id bigint, most int default 101)
returns table (item_id text, currency text, actual bigint, actual_compare_at bigint, expected bigint,
               expected_compare_at bigint, rule jsonb)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  pass constant rules.passes := rules.held_pass(pass_mismatches.step_id, pass_mismatches.lease_id);
begin
  return query
  select v.item_id, v.currency, x.actual, x.actual_compare_at, x.expected, x.expected_compare_at, p.plan -> 'rule'
    from rules.findings x
    join rules.target_values v on v.step_id = x.step_id
    join rules.plans p on p.run_id = x.run_id
   where x.pass_id = pass.pass_id and x.finding = 'mismatch'
   order by x.step_id limit pass_mismatches.most;
end
$$;
grant execute on function rules.pass_mismatches to hf_worker;
