-- Lists the steps of a task to read after some of them were settled: all steps of a task of up to 300, none if it has
-- no live step. Of a larger task: the settled steps, up to ten children of each of them, 100 steps before and 100 after
-- the last of them, and the last 100 of the task, which are claimed last.
create or replace function flow.steps_around(task holdfast.runs, settled bigint[])
returns setof bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  last constant bigint := (select max(u.id) from unnest(steps_around.settled) u (id));
begin
  if task.live = 0 then
    return;
  end if;
  if task.total <= 300 then
    return query select n.step_id from holdfast.run_steps n where n.run_id = task.id;
    return;
  end if;
  return query
  select u.id from unnest(steps_around.settled) u (id)
  union
  select e.next_id
    from unnest(steps_around.settled) u (id)
   cross join lateral (select d.next_id from holdfast.edges d where d.step_id = u.id order by d.next_id limit 10) e
  union
  (select n.step_id from holdfast.run_steps n
    where n.run_id = task.id and n.step_id < last order by n.step_id desc limit 100)
  union
  (select n.step_id from holdfast.run_steps n
    where n.run_id = task.id and n.step_id > last order by n.step_id limit 100)
  union
  (select n.step_id from holdfast.run_steps n where n.run_id = task.id order by n.step_id desc limit 100);
end
$$;
