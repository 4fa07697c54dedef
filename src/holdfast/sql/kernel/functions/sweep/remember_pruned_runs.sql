-- Records the runs that a chunk has removed, by rule, as remember_pruned_steps does for steps.
create or replace function holdfast.remember_pruned_runs(ids uuid[], rules text[], clock timestamptz)
returns void
language sql
begin atomic
  insert into holdfast.prunings (at, rule, span, run_ids)
  select remember_pruned_runs.clock, u.rule,
         int8range(min(holdfast.place_of(u.id)), max(holdfast.place_of(u.id)), '[]'), array_agg(u.id order by u.id)
    from unnest(remember_pruned_runs.ids, remember_pruned_runs.rules) u (id, rule)
   group by u.rule;
end;
