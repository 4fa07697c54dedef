-- Returns a plan whose limits, weights and batch_keys have the fields of the context filled in: {shop} becomes acme.
-- The steps of a sub-flow are filled in when it is opened, with its own context.
create or replace function flow.fill_limits(steps jsonb, context jsonb)
returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not coalesce(fill_limits.steps @? '$[*] ? (exists (@.limits) || exists (@.weight) || '
                                       '@.batch_key like_regex "[{]")', false) then
    return fill_limits.steps;
  end if;
  return (
    select jsonb_agg((p.step - 'limits' - 'weight' - 'batch_key') || jsonb_strip_nulls(jsonb_build_object(
             'batch_key', holdfast.fill_template(p.step ->> 'batch_key', fill_limits.context, 'context'),
             'limits', case when p.step ? 'limits' then to_jsonb(array(
               select holdfast.fill_template(t.name, fill_limits.context, 'context')
                 from unnest(holdfast.planned_limits(p.step)) with ordinality t (name, no)
                order by t.no)) end,
             -- A weight of 0 is for kinds whose calls have a weight, which add_steps knows.
             'weight', case when p.step ? 'weight' then holdfast.weight_for(
               null, holdfast.fill_template(p.step ->> 'weight', fill_limits.context, 'context'), 1, '{}') end))
           order by p.no)
      from jsonb_array_elements(fill_limits.steps) with ordinality p (step, no));
end
$$;
