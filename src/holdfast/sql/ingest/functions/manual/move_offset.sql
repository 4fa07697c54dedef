-- Moves the offset of a partition that nobody holds by compare-and-swap, as the document's UPDATE does, and returns
-- whether it matched. The next page begins there; a source that is not read by offset begins again.
create or replace function ingest.move_offset(run_id uuid, partition_id text, expected int, next_offset int)
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  step holdfast.steps;
begin
  select s.* into step from ingest.partitions p join holdfast.steps s on s.id = p.step_id
   where p.run_id = move_offset.run_id and p.partition_id = move_offset.partition_id
     and holdfast.matches_any(allowed, p.tenant)
     for update of s;
  if step.lease_id is not null then  -- guard: held
    perform holdfast.refuse('RN010', format('%s is held by worker %s, which moves its offset', move_offset.partition_id,
                                            step.lease_owner), 'wait until it is released, or cancel the run');
  end if;
  if move_offset.next_offset < 0 then
    perform holdfast.refuse('RN005', format('next_offset must not be negative, got %s', move_offset.next_offset), null,
                            'next_offset');
  end if;
  update ingest.partitions p
     set next_offset = move_offset.next_offset, records_processed = move_offset.next_offset,
         updated_at = holdfast.clock()
   where p.run_id = move_offset.run_id and p.partition_id = move_offset.partition_id
     and p.next_offset = move_offset.expected  -- guard: compare-and-swap
     and not p.completed;
  if not found then
    return false;
  end if;
  -- From here on every key counts as new again: a walk ends at a page without a new one.
  perform holdfast.set_cursor(step.id, coalesce(step.cursor, '{}') - '{page,counting}'::text[] || jsonb_build_object(
    'offset', move_offset.next_offset, 'read', 0, 'moved', coalesce((step.cursor ->> 'moved')::int, 0) + 1));
  return true;
end
$$;
grant execute on function ingest.move_offset to hf_operator;
