-- Lists what a sweep would leave behind if it did not remove whole runs, and a sweep that is not there; part of
-- holdfast.violations(). The steps of a large run that is being removed are not listed.
create or replace function holdfast.retention_violations()
returns table (invariant text, subject text, detail text)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  with orphans as (
    select n.run_id, n.step_id, r.id is null as lacks_run, s.id is null as lacks_step
      from holdfast.run_steps n
      left join holdfast.runs r on r.id = n.run_id
      left join holdfast.steps s on s.id = n.step_id
     where (r.id is null or s.id is null)
       and not exists (select from holdfast.retention_sweep w where w.run_left = n.run_id))
  select 'run_is_whole', 'run ' || o.run_id,
         format('step %s belongs to it, but %s', o.step_id,
                case when o.lacks_run then 'the run is gone' else 'the step is gone' end)
    from orphans o
  union all
  select 'run_is_whole', 'run ' || s.run_id, format('step %s is left of it', s.id)
    from holdfast.steps s
   where s.run_id is not null and not exists (select from holdfast.runs r where r.id = s.run_id)
     and not exists (select from holdfast.run_steps n where n.run_id = s.run_id and n.step_id = s.id)
  union all
  select 'edge_joins_two_steps', 'step ' || e.next_id,
         format('it waits for step %s, and one of them is gone', e.step_id)
    from holdfast.edges e
   where (not exists (select from holdfast.steps s where s.id = e.step_id)
          or not exists (select from holdfast.steps s where s.id = e.next_id))
     and not exists (select from holdfast.retention_sweep w
                       join holdfast.run_steps n on n.run_id = w.run_left and n.step_id in (e.step_id, e.next_id))
  union all
  select 'noted_step_exists', 'step ' || k.step_id, format('it has the key %s of a note, and is gone', k.key)
    from holdfast.note_keys k
   where not exists (select from holdfast.steps s where s.id = k.step_id)
  union all
  select 'retention_sweeps', 'retention_sweep', 'its row is missing; insert it again: begins_at'
   where not exists (select from holdfast.retention_sweep)
$$;
