-- Takes a step to a state that a person may take it to: pending (try it again), resolved_manually or cancelled. True when it moved,
-- false when it was there already. What the machine does not allow, and what is a worker's to do, is refused.
create or replace function flow.safe_transition_to(step_id bigint, state text, reason text default null)
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  step constant holdfast.steps := flow.step_to_change(safe_transition_to.step_id);
  event constant text := case safe_transition_to.state
    when 'pending' then 'reopened' when 'resolved_manually' then 'resolved' when 'cancelled' then 'cancelled' end;
begin
  if step.state = safe_transition_to.state then
    return false;
  end if;
  if event is null then
    perform holdfast.refuse('RN010', format('step %s is %s and cannot be made %s', step.id, step.state, safe_transition_to.state),
                            'a person makes a step pending, resolved_manually or cancelled; its worker does the rest');
  end if;
  perform holdfast.wish(step.id::text, event, safe_transition_to.reason);
  return true;
end
$$;
