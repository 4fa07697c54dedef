-- Refuses to call a run APPLIED by hand while an included target is not.
create or replace function rules.refuse_unapplied(facts rules.run_facts)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  left_over bigint;
begin
  select count(*) into left_over
    from holdfast.run_steps n join holdfast.steps s on s.id = n.step_id
   where n.run_id = facts.run_id and s.state not in ('APPLIED', 'ROLLED_BACK') and rules.is_included(facts, s.id);
  if left_over > 0 then  -- guard: all-applied
    perform holdfast.refuse('RN001', format('run %s cannot be APPLIED: %s of its targets are not', facts.run_id,
                                            left_over),
                            'retry them with rules.retry_all, or preview again', facts.run_id::text);
  end if;
end
$$;
