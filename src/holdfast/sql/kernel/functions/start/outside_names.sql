-- The names that steps of a plan wait for and that the plan does not have itself: they have to be in the run already.
create or replace function holdfast.outside_names(steps jsonb)
returns text[]
language sql immutable
begin atomic
  select coalesce(array_agg(u.name), '{}')
    from (select a.name  -- by set: a join of ten thousand names each of them
            from jsonb_array_elements(outside_names.steps) p,
                 lateral jsonb_array_elements_text(coalesce(nullif(p -> 'after', 'null'), '[]')) a (name)
          except
          select q ->> 'name' from jsonb_array_elements(outside_names.steps) q where q ->> 'name' is not null) u;
end;
