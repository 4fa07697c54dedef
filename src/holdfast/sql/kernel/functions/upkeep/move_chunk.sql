-- Moves the next chunk of about `batch` steps of a run that was cancelled, reopened, stopped or resumed, and returns
-- how many moved; 0 if no such run is left that nobody else is moving. A worker whose upkeep moved a chunk calls this
-- until nothing is left: it does nothing else, so that what it locks is locked briefly. Call it in a transaction of its
-- own, because its commit does not wait for the disk.
create or replace function holdfast.move_chunk(batch int default 1000)
returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if move_chunk.batch is null or move_chunk.batch not between 1 and 10000 then
    perform holdfast.refuse('RN005', format('batch must be 1 to 10000, got %s', move_chunk.batch),
                            '1000 is fast', 'batch');
  end if;
  -- If the server crashes, the last chunks are lost whole, with the position that they stored, and are moved again.
  perform set_config('synchronous_commit', 'off', true);
  return holdfast.move_next_chunk(move_chunk.batch);
end
$$;
grant execute on function holdfast.move_chunk to hf_worker;
