-- Returns the names that steps of a plan wait for but that are not in the plan. The run must already have them.
create or replace function holdfast.outside_names(steps jsonb)
returns text[]
language sql immutable
begin atomic
  select coalesce(array_agg(u.name), '{}')
    from (select a.name  -- except, not a join, which is quadratic in the names
            from jsonb_array_elements(outside_names.steps) p,
                 lateral jsonb_array_elements_text(coalesce(nullif(p -> 'after', 'null'), '[]')) a (name)
          except
          select q ->> 'name' from jsonb_array_elements(outside_names.steps) q where q ->> 'name' is not null) u;
end;
