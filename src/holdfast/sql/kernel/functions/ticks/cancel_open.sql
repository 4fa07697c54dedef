-- Cancels those of these steps (numbers) and runs (UUIDs) that are not over, and the runs that belong to the runs. The
-- caller has called set_actor. What cannot be cancelled any more is left alone.
create or replace function holdfast.cancel_open(ids text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  step holdfast.steps;
  run holdfast.runs;
begin
  for step in
    select s.* from holdfast.steps s
     where s.id = any (array(select u.id::bigint from unnest(cancel_open.ids) u (id) where u.id ~ '^[0-9]{1,18}$'))
       and s.finished_at is null
     order by s.id
       for update
  loop
    continue when not exists (
      select from holdfast.machine_moves m
       where m.machine = step.machine and m.from_state = step.state and m.event = 'cancelled');
    perform holdfast.act_on_step(step, 'cancelled');
  end loop;
  for run in
    with recursive family as (
      select r.id from holdfast.runs r
       where r.id = any (array(select u.id::uuid from unnest(cancel_open.ids) u (id)
                                where u.id ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'))
      union
      select r.id from family f join holdfast.runs r on r.of_run = f.id)
    select r.* from holdfast.runs r
     where r.id = any (array(select f.id from family f)) and r.finished_at is null
     order by r.id
  loop
    begin
      perform holdfast.act_on_run(run, 'cancelled');
    exception when sqlstate 'RN010' then
      null;  -- it ended in between
    end;
  end loop;
end
$$;
