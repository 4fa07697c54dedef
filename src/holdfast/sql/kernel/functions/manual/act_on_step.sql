-- Moves a locked step by an event that a person requested. Reopens its run if that had ended. Where the machine has no
-- `resolved` move, a failed step is marked as resolved and keeps its state.
create or replace function holdfast.act_on_step(step holdfast.steps, event text, result jsonb default null)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  moved holdfast.settled_step;
begin
  if act_on_step.event = 'resolved' and act_on_step.result is null
     and not exists (select from holdfast.machine_moves m
                      where m.machine = step.machine and m.event = act_on_step.event)
     and holdfast.mark_resolved(step, nullif(current_setting('holdfast.reason', true), ''),
                                current_setting('holdfast.actor', true)) then
    return step.state;
  end if;
  if not exists (select from holdfast.machine_moves m
                  where m.machine = step.machine and m.from_state = step.state and m.event = act_on_step.event) then
    perform holdfast.refuse(
      'RN010', format('step %s is %s and cannot be %s', step.id, step.state, act_on_step.event),
      coalesce('possible now: ' || (select string_agg(m.event, ', ' order by m.event) from holdfast.machine_moves m
                                     where m.machine = step.machine and m.from_state = step.state
                                       and m.event in ('cancelled', 'reopened', 'resolved')),
               format('%s is final for a %s', step.state, step.machine)),
      step.id::text);
  end if;
  if step.run_id is not null and act_on_step.event in ('reopened', 'resolved') then
    perform holdfast.reopen_run(step.run_id, clock);
  end if;
  select m.* into moved
    from holdfast.move_steps(array[
           (step.id, step.lease_id, act_on_step.event, clock, act_on_step.result, null, null)::holdfast.step_move]) m;
  if act_on_step.event = 'reopened' then
    perform holdfast.wake(array[step.queue]);
  end if;
  return moved.state;
end
$$;
