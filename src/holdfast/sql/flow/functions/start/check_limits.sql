-- Refuses a definition whose steps name limits that no step can name, or a weight that is neither a number nor names a
-- field of the context.
create or replace function flow.check_limits(steps jsonb)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_limit_names(coalesce(holdfast.planned_limits(p.step), '{}')),
          holdfast.weight_for(null, case when p.step ->> 'weight' !~ '\{' then p.step ->> 'weight' end, 1, '{}')
     from jsonb_array_elements(check_limits.steps) p (step)
    where p.step ?| array['limits', 'weight'];
end
$$;
