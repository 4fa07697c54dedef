-- Stores what is staged as a run in PREVIEW, with its plan, and returns it. `facts` has its tenant, project, channel,
-- source, metadata, expiry and what it undoes; `more` is added to the plan. If the key was used for the same request,
-- the run that exists is returned. A preview's request is its rule, channel, source and project, and not its plan: the
-- prices are others once the first run was applied. A rollback's is its plan. The caller has checked everything.
create or replace function rules.keep_preview(
  facts rules.run_facts, rule rules.rule_versions, more jsonb, unchanged bigint, parent_run_id uuid, key text,
  author text)
returns table (run_id uuid, plan_hash text, expires_at timestamptz, targets int, refused bigint, is_new boolean)
language plpgsql
set search_path = pg_catalog, pg_temp
set jit = off
as $$
#variable_conflict use_column
declare
  clock constant timestamptz := holdfast.clock();
  new_id constant uuid := holdfast.uuid7();
  request constant jsonb := jsonb_build_object('rule', rule.definition, 'channel', facts.channel,
                                               'source', facts.source, 'project', facts.project_id);
  whole jsonb;
  counted int;
  hash text;
  taken uuid;
begin
  insert into rules.target_values (step_id, run_id, item_id, currency, price_before, price_after, compare_at_before,
                                   compare_at_after, writes_price, writes_compare_at)
  select coalesce(g.id, g.own_id), new_id, g.item_id, g.currency, g.price_before, g.price_after, g.compare_at_before,
         g.compare_at_after, g.writes_price, g.writes_compare_at
    from pg_temp.staged_steps g;
  get diagnostics counted = row_count;
  insert into rules.refused_items (run_id, item_id, reason, message, currency, price_before, price_after)
  select new_id, left(r.item_id, 400), left(r.reason, 100), left(r.message, 1000), r.currency, r.price_before,
         r.price_after
    from pg_temp.staged_refusals r;
  get diagnostics refused = row_count;
  whole := rules.plan_of(new_id, rule, facts.channel, keep_preview.unchanged, refused) || keep_preview.more;
  hash := rules.plan_digest(new_id, whole);
  if keep_preview.key is not null then
    taken := holdfast.take_key(
      facts.tenant, keep_preview.key, new_id::text,
      sha256(convert_to(case when facts.undoes is null then request::text else hash end, 'UTF8')), null)::uuid;
    if taken <> new_id then
      perform rules.forget_values(array[new_id]);
      drop table pg_temp.staged_steps, pg_temp.staged_edges, pg_temp.staged_refusals;
      return query select f.run_id, p.plan_hash, f.expires_at, p.targets, p.refused, false
                     from rules.run_facts f join rules.plans p on p.run_id = f.run_id where f.run_id = taken;
      return;
    end if;
  end if;
  insert into rules.plans (run_id, tenant, plan, plan_hash, targets, unchanged, refused, created_at)
  values (new_id, facts.tenant, whole, hash, counted, keep_preview.unchanged, refused, clock);
  insert into rules.run_facts (run_id, tenant, project_id, rule_id, rule_version, channel, source, metadata,
                               expires_at, included, undoes)
  values (new_id, facts.tenant, facts.project_id, rule.rule_id, rule.version, facts.channel, facts.source,
          jsonb_build_object('actor', author, 'correlationId', new_id, 'source', facts.source) || facts.metadata,
          facts.expires_at, counted, facts.undoes);
  insert into rules.channel_uses values (facts.tenant, facts.channel) on conflict do nothing;
  perform rules.begin_preview(new_id, rule.rule_id, keep_preview.parent_run_id, author, facts.tenant);
  drop table pg_temp.staged_refusals;
  if counted > 0 then
    perform holdfast.take_staged('rules.target', new_id, facts.tenant);
  else
    drop table pg_temp.staged_steps, pg_temp.staged_edges;
  end if;
  return query select new_id, hash, facts.expires_at, counted, refused, true;
end
$$;
