-- Returns the next steps of a run that are to be admitted, after `after` and at most `most`, in the order of their ids:
-- as a retry chose them, as the run's face says, or all of them. Some may have been admitted before.
create or replace function holdfast.next_to_admit(run holdfast.runs, after bigint, most int)
returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  face constant text := (select c.admits from holdfast.machines c where c.machine = run.machine);
  ids bigint[];
begin
  if run.admits = 'chosen' then
    return array(select c.step_id from holdfast.run_choices c
                  where c.run_id = run.id and c.step_id > next_to_admit.after
                  order by c.step_id limit next_to_admit.most);
  end if;
  if face is not null then
    execute format('select %s($1, $2, $3)', holdfast.face_name(face)) into ids
      using run.id, next_to_admit.after, next_to_admit.most;
    return coalesce(ids, '{}');
  end if;
  return array(select n.step_id from holdfast.run_steps n
                where n.run_id = run.id and n.step_id > next_to_admit.after
                order by n.step_id limit next_to_admit.most);
end
$$;
