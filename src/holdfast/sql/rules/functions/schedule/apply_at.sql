-- Applies a previewed run at a later time, undoes it at another, or both: a change that ends by itself. Each time is a
-- schedule of its own, rules:apply:<run> and rules:revert:<run>, which can be removed or given another time. Without
-- `at` the run is applied now. The plan must not expire before `at`, and `revert_at` must be after it. The other
-- arguments are those of rules.apply; they are checked now and used then.
create or replace function rules.apply_at(
  run_id uuid, at timestamptz default null, revert_at timestamptz default null, plan text default null,
  only_ids bigint[] default null, without_ids bigint[] default null, first int default null,
  leave_out_shared boolean default false, reason text default null, actor text default null)
returns table (status text, included int, left_out int, is_new boolean, apply_schedule text, revert_schedule text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  facts constant rules.run_facts := rules.facts_to_change(apply_at.run_id);
  planned constant int := (select p.targets from rules.plans p where p.run_id = apply_at.run_id);
  named constant jsonb := jsonb_strip_nulls(jsonb_build_object(
    'only', (select jsonb_agg(u.id order by u.id) from unnest(apply_at.only_ids) u (id)),
    'without', (select jsonb_agg(u.id order by u.id) from unnest(apply_at.without_ids) u (id)),
    'first', apply_at.first, 'leave_out_shared', nullif(apply_at.leave_out_shared, false),
    'run_id', apply_at.run_id, 'reason', apply_at.reason));
begin
  perform rules.check_times(facts, apply_at.at, apply_at.revert_at);
  if apply_at.at is null then
    select a.status, a.included, a.left_out, a.is_new into strict status, included, left_out, is_new
      from rules.apply(apply_at.run_id, apply_at.plan, apply_at.only_ids, apply_at.without_ids, apply_at.first,
                       apply_at.leave_out_shared, apply_at.reason, apply_at.actor) a;
  else
    perform rules.check_apply(facts, apply_at.plan, apply_at.first, apply_at.reason, apply_at.actor);
    perform rules.check_choice(facts, apply_at.only_ids, apply_at.without_ids);
    status := 'PREVIEW';
    included := coalesce(cardinality(apply_at.only_ids), planned - coalesce(cardinality(apply_at.without_ids), 0));
    left_out := planned - included;
    apply_schedule := 'rules:apply:' || facts.run_id;
    is_new := not exists (select from holdfast.schedules s where s.tenant = facts.tenant and s.name = apply_schedule);
    perform holdfast.define_schedule(apply_schedule, 'apply', 'rules', named, at => apply_at.at,
                                     tenant => facts.tenant, actor => apply_at.actor);
  end if;
  if apply_at.revert_at is not null then
    revert_schedule := 'rules:revert:' || facts.run_id;
    perform holdfast.define_schedule(
      revert_schedule, 'revert', 'rules', jsonb_strip_nulls(jsonb_build_object('run_id', facts.run_id,
                                                                               'reason', apply_at.reason)),
      at => apply_at.revert_at, tenant => facts.tenant, actor => apply_at.actor);
  end if;
  return next;
end
$$;
grant execute on function rules.apply_at to hf_operator;
