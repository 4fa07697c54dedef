-- Plans the correction of what a pass found, and returns its run: from what the channel showed to what is expected,
-- with the source `reconciliation`. It is queued by the actor scheduler if `is_safe` (its guardrails hold) and it has
-- at most 100 targets; otherwise it is a preview to look at. Returns null if there is nothing to correct; what a later
-- run of ours has written since is left alone. A worker calls it in the transaction that completes the pass's last
-- step.
create or replace function rules.correct(step_id bigint, lease_id bigint, is_safe boolean)
returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  pass rules.passes;
  facts rules.run_facts;
  rule rules.rule_versions;
  made record;
begin
  -- Locked, so that the step cannot pass to another worker before this is committed.
  perform from holdfast.steps s where s.id = correct.step_id and s.lease_id = correct.lease_id for update;
  pass := rules.held_pass(correct.step_id, correct.lease_id);
  if pass.correction is not null then
    return pass.correction;
  end if;
  select f.* into strict facts from rules.run_facts f where f.run_id = pass.run_id;
  select v.* into strict rule from rules.rule_versions v
   where v.tenant = facts.tenant and v.rule_id = facts.rule_id and v.version = facts.rule_version;
  perform rules.stage_targets(pass.channel, pass.tenant);
  insert into pg_temp.staged_steps (item_id, currency, price_before, price_after, compare_at_before, compare_at_after,
                                    writes_price, writes_compare_at, batch_key)
  select v.item_id, v.currency, case when v.writes_price then x.actual else v.price_after end, v.price_after,
         case when v.writes_compare_at then x.actual_compare_at else v.compare_at_after end, v.compare_at_after,
         v.writes_price, v.writes_compare_at,
         (select s.batch_key from holdfast.steps s where s.id = v.step_id)
    from rules.findings x join rules.target_values v on v.step_id = x.step_id
   where x.pass_id = pass.pass_id and x.finding = 'mismatch' and x.actual_currency = v.currency
     and (x.actual is not null or not v.writes_price)
     and not rules.is_overtaken(pass, v, x.actual, x.actual_compare_at);  -- guard: overtaken
  if not exists (select from pg_temp.staged_steps) then
    drop table pg_temp.staged_steps, pg_temp.staged_edges, pg_temp.staged_refusals;
    return null;
  end if;
  facts.source := 'reconciliation';
  facts.metadata := jsonb_build_object('pass', pass.no);
  facts.expires_at := holdfast.clock() + interval '24 hours';
  facts.undoes := null;
  select k.* into strict made
    from rules.keep_preview(facts, rule, jsonb_build_object('corrects', pass.run_id, 'pass', pass.no), 0, pass.run_id,
                            null, 'reconcile') k;
  update rules.passes a set correction = made.run_id where a.pass_id = pass.pass_id;
  if correct.is_safe and made.targets <= 100 then
    perform rules.apply_as_scheduler(made.run_id, 'correction of a mismatch');
  end if;
  return made.run_id;
end
$$;
grant execute on function rules.correct to hf_worker;
