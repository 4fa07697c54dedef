-- Copies the cursors of a run's steps to the steps of the same names in another run, except for the steps `except_ids`.
-- No step moves.
create or replace function holdfast.copy_cursors(from_run uuid, to_run uuid, except_ids bigint[] default '{}')
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update holdfast.steps s
     set cursor = o.cursor
    from holdfast.run_steps n, holdfast.run_steps m, holdfast.steps o
   where n.run_id = copy_cursors.to_run and s.id = n.step_id and m.run_id = copy_cursors.from_run and m.name = n.name
     and o.id = m.step_id and o.cursor is not null and o.id <> all (coalesce(copy_cursors.except_ids, '{}'));
end
$$;
