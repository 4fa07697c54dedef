-- Sets the cursor of a step that nobody holds; the caller has locked it. No step moves.
create or replace function holdfast.set_cursor(step_id bigint, cursor jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_size('a cursor', set_cursor.cursor);
  update holdfast.steps s set cursor = set_cursor.cursor
   where s.id = set_cursor.step_id and s.lease_id is null;
end
$$;
