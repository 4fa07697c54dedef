-- Fires `rolled_back` on a run of which everything has been undone, and marks its failed steps as dealt with for
-- `reason`. Tells whether it moved. It reads the dead letter in the range of the run's steps, and not the run: a settle
-- calls it. The caller has called set_actor.
create or replace function holdfast.undo_run(run_id uuid, reason text)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by their indexes, whatever the statistics say
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
  actor constant text := coalesce(nullif(current_setting('holdfast.actor', true), ''), session_user);
  first constant bigint := (select n.step_id from holdfast.run_steps n
                             where n.run_id = undo_run.run_id order by n.step_id limit 1);
  last constant bigint := (select n.step_id from holdfast.run_steps n
                            where n.run_id = undo_run.run_id order by n.step_id desc limit 1);
  failed bigint[];
begin
  if holdfast.move_runs(array[undo_run.run_id], 'rolled_back', clock) = 0 then
    return false;
  end if;
  with dead as materialized (
    select s.id, s.tenant, s.finished_at
      from holdfast.steps s
      join holdfast.machine_states t on t.machine = s.machine and t.state = s.state and t.outcome = 'failed'
     where s.id between first and last and s.run_id = undo_run.run_id and s.finished_at is not null
       and s.last_event not in ('succeeded', 'cancelled', 'resolved', 'rolled_back')),  -- the predicate of the index
  marked as (
    insert into holdfast.resolutions as x (step_id, tenant, resolved_at, actor, reason)
    select d.id, d.tenant, greatest(clock, d.finished_at), actor, undo_run.reason from dead d
    on conflict (step_id) do update
      set resolved_at = excluded.resolved_at, actor = excluded.actor, login = null, reason = excluded.reason
      where x.resolved_at < (select d.finished_at from dead d where d.id = x.step_id)
    returning x.step_id)
  select array_agg(m.step_id) into failed from marked m;
  if failed is not null then
    perform holdfast.note_change(failed, 'resolved', '{}', undo_run.reason, actor);
  end if;
  return true;
end
$$;
