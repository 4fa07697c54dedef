-- Counts a run's steps; the columns of holdfast.runs cache these counts.
create or replace function holdfast.count_steps(run_id uuid)
returns table (total int, live int, succeeded int, failed int, cancelled int)
language sql stable
begin atomic
  select count(*)::int,
         (count(*) filter (where holdfast.is_live(s)))::int,
         (count(*) filter (where s.finished_at is not null and holdfast.is_success(t.outcome)))::int,
         (count(*) filter (where s.finished_at is not null and t.outcome = 'failed'))::int,
         (count(*) filter (where s.finished_at is not null and t.outcome = 'cancelled'))::int
    from holdfast.run_steps r
    join holdfast.steps s on s.id = r.step_id
    left join holdfast.machine_states t on t.machine = s.machine and t.state = s.state
   where r.run_id = count_steps.run_id;
end;
