-- Lists the targets of a run that is over of which nobody knows whether their price was written: they failed so, or the
-- run was stopped before their next try. Left out are those that a person has dealt with.
create or replace function rules.unknown_targets(run_id uuid)
returns setof bigint
language sql stable
begin atomic
  select s.id
    from holdfast.run_steps n join holdfast.steps s on s.id = n.step_id
   where n.run_id = unknown_targets.run_id and rules.is_unknown(s.error)
     and s.state in ('FAILED', 'QUEUED')  -- guard: open
     and not exists (select from holdfast.resolutions x where x.step_id = s.id and x.resolved_at >= s.finished_at)
   order by s.id;
end;
