-- Applies a previewed run: queues it, so that workers send its plan and nothing else. `plan` is the plan's hash, or 8
-- or more of its first digits. `only_ids` or `without_ids` choose targets; `first` applies so many, then pauses.
-- A run that has items in common with another open run of the channel is refused, or with `leave_out_shared` applied
-- without them. Applying again returns what became of it (`is_new` is false). `actor` names the person that the login
-- acts for.
create or replace function rules.apply(
  run_id uuid, plan text default null, only_ids bigint[] default null, without_ids bigint[] default null,
  first int default null, leave_out_shared boolean default false, reason text default null, actor text default null)
returns table (status text, included int, left_out int, is_new boolean)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  facts rules.run_facts := rules.facts_to_change(apply.run_id);
  planned constant int := (select p.targets from rules.plans p where p.run_id = apply.run_id);
  given constant jsonb := jsonb_strip_nulls(jsonb_build_object(
    'only', (select jsonb_agg(u.id order by u.id) from unnest(apply.only_ids) u (id)),
    'without', (select jsonb_agg(u.id order by u.id) from unnest(apply.without_ids) u (id)), 'first', apply.first,
    'leave_out_shared', nullif(apply.leave_out_shared, false)));
  state text;
begin
  perform holdfast.check_reason(apply.reason);
  perform holdfast.check_name('actor', apply.actor);
  if apply.plan is not null then
    perform rules.check_plan_hash(apply.run_id, apply.plan);
  end if;
  if apply.first < 1 then
    perform holdfast.refuse('RN005', format('first must be 1 or more, got %s', apply.first), 'use 50', 'first');
  end if;
  perform rules.lock_channel(facts);
  select f.* into strict facts from rules.run_facts f where f.run_id = apply.run_id;
  select r.state into strict state from holdfast.runs r where r.id = apply.run_id;
  if state <> 'PREVIEW' then
    perform rules.check_applied_alike(facts, state, given);
    return query select state, facts.included, planned - facts.included, false;
    return;
  end if;
  if facts.expires_at <= holdfast.clock() then  -- guard: expiry
    perform holdfast.refuse('RN010', format('the plan of run %s expired at %s', facts.run_id, facts.expires_at),
                            format('plan again with `holdfast rules preview --again %s`', facts.run_id), 'plan');
  end if;
  update rules.run_facts f set selection = given where f.run_id = facts.run_id;
  if apply.only_ids is not null or apply.without_ids is not null or apply.leave_out_shared then
    facts := rules.choose_targets(facts, apply.only_ids, apply.without_ids, apply.leave_out_shared);
  end if;
  perform holdfast.set_actor('api', coalesce(apply.actor, session_user), apply.reason);
  perform holdfast.begin_admission(facts.run_id, apply.first);
  perform holdfast.set_actor();
  return query select r.state, facts.included, planned - facts.included, true
                 from holdfast.runs r where r.id = apply.run_id;
end
$$;
grant execute on function rules.apply to hf_operator;
