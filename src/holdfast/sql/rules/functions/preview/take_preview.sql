-- Turns the staged targets and refusals into a run in PREVIEW, with its plan: all of them or none. `rule` is the rule
-- in its JSON form; the run keeps the version that it has now. The plan can be applied until it expires, after
-- `expires_in` (at most 30 days). `metadata` may have actor, correlationId and more. `key` works as for a task: the
-- same rule, channel, source and project return the run that exists, whatever the items are by now.
-- `unmatched` counts the skus of a list of prices that no item has, and `unmatched_first` names up to five of them.
-- Nothing is written outside of Holdfast.
create or replace function rules.take_preview(
  rule jsonb, channel text, unchanged bigint default 0, source text default 'api', metadata jsonb default '{}',
  project_id text default null, expires_in interval default '24 hours', parent_run_id uuid default null,
  key text default null, actor text default null, tenant text default 'default',
  unmatched bigint default 0, unmatched_first text[] default '{}')
returns table (run_id uuid, plan_hash text, expires_at timestamptz, targets int, refused bigint, is_new boolean)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  author constant text := coalesce(take_preview.actor, session_user);
  facts rules.run_facts;
  more jsonb := '{}';
begin
  perform holdfast.check_tenant(take_preview.tenant);
  perform rules.check_preview(take_preview.rule, take_preview.source, take_preview.metadata, take_preview.project_id,
                              take_preview.expires_in, take_preview.unchanged, take_preview.key, take_preview.actor);
  if take_preview.source = 'rollback' then
    perform holdfast.refuse('RN005', 'a preview cannot have the source rollback', 'use rules.rollback', 'source');
  end if;
  if (take_preview.unmatched >= 0) is not true then
    perform holdfast.refuse('RN005', format('unmatched must be 0 or more, got %s', take_preview.unmatched),
                            'count the skus of the list that no item has', 'unmatched');
  end if;
  if take_preview.unmatched > 0 then
    more := jsonb_build_object('unmatched', jsonb_build_object(
      'skus', take_preview.unmatched, 'first', to_jsonb(coalesce(take_preview.unmatched_first[1:5], '{}'))));
  end if;
  perform rules.check_channel(take_preview.channel, take_preview.tenant);
  perform rules.check_staging();
  perform rules.check_targets(take_preview.channel);
  facts.tenant := take_preview.tenant;
  facts.project_id := take_preview.project_id;
  facts.channel := take_preview.channel;
  facts.source := take_preview.source;
  facts.metadata := coalesce(take_preview.metadata, '{}');
  facts.expires_at := holdfast.clock() + take_preview.expires_in;
  return query select k.* from rules.keep_preview(
    facts, rules.freeze_rule(take_preview.rule, true, author, take_preview.tenant), more, take_preview.unchanged,
    take_preview.parent_run_id, take_preview.key, author) k;
end
$$;
grant execute on function rules.take_preview to hf_producer, hf_worker, hf_operator;
