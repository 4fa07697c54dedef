-- Retries chosen steps of a run that is over: those that failed, and those that were not tried. Each must be one of
-- them. Of a run with a window they are admitted as the window allows. Returns the run's state. The caller has called
-- set_actor.
create or replace function holdfast.readmit(run_id uuid, ids bigint[])
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
  chosen constant bigint[] := array(select distinct u.id from unnest(readmit.ids) u (id) order by u.id);
  run holdfast.runs;
  odd bigint;
begin
  perform pg_advisory_xact_lock(holdfast.run_lock(readmit.run_id));
  select r.* into run from holdfast.runs r where r.id = readmit.run_id for update;
  if run.finished_at is null or holdfast.move_runs(array[run.id], 'reopened', clock) = 0 then
    perform holdfast.refuse('RN010', format('run %s is %s and cannot be reopened', run.id, run.state),
                            case when run.finished_at is null then 'retry its steps when it is over'
                                 else format('%s is final for a %s', run.state, run.machine) end, run.id::text);
  end if;
  select u.id into odd
    from unnest(chosen) u (id)
    left join lateral (select h.* from holdfast.steps h where h.id = u.id offset 0) s on true
   where s.run_id is distinct from run.id or not holdfast.is_admissible(s, true)  -- guard: admissible
   limit 1;
  if odd is not null or chosen = '{}' then
    perform holdfast.refuse(
      'RN005', case when odd is null then format('no step of run %s was chosen', run.id)
                    else format('step %s cannot be retried in run %s', odd, run.id) end,
      'choose steps of the run that failed or were not tried', 'ids');
  end if;
  if run.window_size is null then
    perform from holdfast.move_steps(array(
      select (u.id, null, 'reopened', clock, null, null, null)::holdfast.step_move from unnest(chosen) u (id)), clock);
    perform holdfast.admit_untried(run, chosen, clock);
  else
    delete from holdfast.run_choices c where c.run_id = run.id;
    insert into holdfast.run_choices select run.id, u.id from unnest(chosen) u (id);
    update holdfast.runs r
       set admits = 'chosen', to_admit = cardinality(chosen), admitted_until = 0, first_left = null
     where r.id = run.id;
    perform holdfast.admit_lot(run.id, clock);
  end if;
  return (select r.state from holdfast.runs r where r.id = run.id);
end
$$;
