-- Refuses arguments of an apply that cannot be right, whenever it happens.
create or replace function rules.check_apply(facts rules.run_facts, plan text, first int, reason text, actor text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_reason(check_apply.reason);
  perform holdfast.check_name('actor', check_apply.actor);
  if check_apply.plan is not null then
    perform rules.check_plan_hash(facts.run_id, check_apply.plan);
  end if;
  if check_apply.first < 1 then
    perform holdfast.refuse('RN005', format('first must be 1 or more, got %s', check_apply.first), 'use 50', 'first');
  end if;
end
$$;
