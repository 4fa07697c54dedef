-- The UPDATE trigger of ingest.partition_progress: takes the document's compare-and-swap of next_offset, on a partition
-- that nobody holds, and refuses everything else.
create or replace function ingest.take_offset()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if (to_jsonb(new) - '{next_offset,updated_at}'::text[]) is distinct from (
      to_jsonb(old) - '{next_offset,updated_at}'::text[]) then  -- guard: statement
    raise exception using errcode = 'RN005',
      message = format('only next_offset and updated_at of %s can be updated', old.partition_id),
      hint = 'a partition completes when its worker settles its last page';
  end if;
  return case when ingest.move_offset(old.run_id, old.partition_id, old.next_offset, new.next_offset) then new end;
end
$$;
