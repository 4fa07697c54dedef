-- Moves a step (by its number) or a task (by its id) to a state that a person may choose: pending (retry it),
-- resolved_manually or cancelled. Returns true if it moved, false if it was already there. Refuses moves that the
-- machine does not list and moves that only workers make. `actor` names the person that the login acts for.
create or replace function flow.safe_transition_to(
  id anycompatible, state text, reason text default null, actor text default null)
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  subject constant text := safe_transition_to.id::text;
  before constant text := flow.state_to_change(subject);
  event constant text := case safe_transition_to.state
    when 'pending' then 'reopened' when 'resolved_manually' then 'resolved' when 'cancelled' then 'cancelled' end;
begin
  if before = safe_transition_to.state then
    return false;
  end if;
  if event is null then
    perform holdfast.refuse('RN010', format('%s is %s and cannot be made %s', subject, before,
                                            safe_transition_to.state),
                            'choose pending, resolved_manually or cancelled; workers make all other moves', subject);
  end if;
  perform holdfast.act_on(subject, event, safe_transition_to.reason, actor => safe_transition_to.actor);
  return true;
end
$$;
grant execute on function flow.safe_transition_to to hf_operator;
