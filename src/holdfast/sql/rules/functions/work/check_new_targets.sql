-- Refuses steps that begin as targets of a run without being in its plan: they come with the preview, all at once.
create or replace function rules.check_new_targets(run_id uuid, targets int)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (select from rules.plans p join holdfast.runs r on r.id = p.run_id
                  where p.run_id = check_new_targets.run_id and p.targets = check_new_targets.targets
                    and r.total = 0 and r.state = 'PREVIEW') then  -- guard: planned
    perform holdfast.refuse('RN005', format('%s targets are not in the plan of run %s', check_new_targets.targets,
                                            check_new_targets.run_id),
                            'stage them with rules.stage_targets() and call rules.take_preview()');
  end if;
end
$$;
