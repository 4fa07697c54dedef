-- Marks a locked step of the dead letter as dealt with, where its machine has no `resolved` move: its state stays, and
-- the dead letter no longer lists it. Tells whether it did; a step that is marked already keeps its mark, unless it was
-- retried and failed again since.
create or replace function holdfast.mark_resolved(step holdfast.steps, reason text, actor text)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if step.finished_at is null
     or not exists (select from holdfast.machine_states t
                     where t.machine = step.machine and t.state = step.state and t.outcome = 'failed') then
    return false;
  end if;
  insert into holdfast.resolutions as x (step_id, tenant, resolved_at, actor, login, reason)
  values (step.id, step.tenant, greatest(holdfast.clock(), step.finished_at), mark_resolved.actor,
          case when mark_resolved.actor <> session_user then session_user end, mark_resolved.reason)
  on conflict (step_id) do update
    set resolved_at = excluded.resolved_at, actor = excluded.actor, login = excluded.login, reason = excluded.reason
    where x.resolved_at < step.finished_at;
  if not found then
    return false;
  end if;
  perform holdfast.note_change(array[step.id], 'resolved', '{}', mark_resolved.reason, mark_resolved.actor);
  return true;
end
$$;
