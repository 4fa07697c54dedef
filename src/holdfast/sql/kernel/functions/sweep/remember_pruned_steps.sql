-- Records the steps that a chunk has removed, by rule: their journal remains, and holdfast.pruned tells why they are
-- gone.
create or replace function holdfast.remember_pruned_steps(ids bigint[], rules text[], clock timestamptz)
returns void
language sql
begin atomic
  insert into holdfast.prunings (at, rule, span, step_ids)
  select remember_pruned_steps.clock, u.rule, int8range(min(u.id), max(u.id), '[]'), array_agg(u.id order by u.id)
    from unnest(remember_pruned_steps.ids, remember_pruned_steps.rules) u (id, rule)
   group by u.rule;
end;
