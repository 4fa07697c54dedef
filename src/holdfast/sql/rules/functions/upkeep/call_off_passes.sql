-- Cancels up to `most` passes that have been due for 30 days and that no worker holds, and returns how many: nobody
-- serves their channel any more, and while they wait, retention keeps the runs that they check. It never waits.
create or replace function rules.call_off_passes(most int)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set jit = off
as $$
declare
  ids constant uuid[] := array(
    select a.pass_id from rules.passes a
     where not a.is_over and a.due_at < holdfast.clock() - rules.kept_for('unserved_passes')
       and not exists (select from holdfast.run_steps n join holdfast.steps s on s.id = n.step_id
                        where n.run_id = a.pass_id and s.lease_id is not null)
     order by a.due_at limit call_off_passes.most);
  own_id uuid;
  locked int;
  run holdfast.runs;
  called_off int := 0;
begin
  foreach own_id in array ids loop
    continue when not pg_try_advisory_xact_lock(holdfast.run_lock(own_id));
    select count(*) into locked  -- steps before their run, as claims and settles lock them
      from (select s.id from holdfast.run_steps n join holdfast.steps s on s.id = n.step_id
             where n.run_id = own_id and s.lease_id is null for update of s skip locked) l;
    select r.* into run from holdfast.runs r
     where r.id = own_id and r.finished_at is null and r.total = locked for update skip locked;
    continue when run.id is null;
    perform holdfast.set_actor('system', 'retention', 'no worker served it for 30 days');
    perform holdfast.act_on_run(run, 'cancelled');
    perform holdfast.set_actor();
    called_off := called_off + 1;
  end loop;
  return called_off;
end
$$;
