-- Keeps ingest.partitions, counts finished partitions in their runs and writes WORK_DONE: the kernel calls it with the
-- partitions that moved, whichever path moved them. The run's row is locked last, so that of partitions that end
-- together each adds one, and the last one finds all of them.
create or replace function ingest.record_partition_moves(moves holdfast.shared_move[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan  -- by key, whatever the statistics say: planned once, not per page
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
begin
  if record_partition_moves.moves[1].event = 'created' then
    return;
  end if;
  update ingest.partitions p
     set worker_id = coalesce(s.lease_owner, p.worker_id),
         started_at = coalesce(p.started_at, case when s.lease_owner is not null then clock end),
         status = case when m.to_state = 'completed' then 'completed'
                       when m.to_state in ('failed', 'cancelled') and p.worker_id is not null then 'failed'
                       when coalesce(s.lease_owner, p.worker_id) is not null then 'running' end,
         error_message = case when m.to_state = 'cancelled' then 'cancelled'
                              when s.error is not null then holdfast.error_text(s.error) end,
         next_offset = coalesce((s.result ->> 'records')::int, (s.cursor ->> 'offset')::int, p.next_offset),
         records_processed = coalesce((s.result ->> 'records')::int, (s.cursor ->> 'offset')::int, 0),
         completed = m.to_state = 'completed',
         completed_at = case when s.finished_at is not null and coalesce(s.lease_owner, p.worker_id) is not null
                             then clock end,
         updated_at = clock
    from unnest(record_partition_moves.moves) m, unnest(m.step_ids) u (step_id)
    join holdfast.steps s on s.id = u.step_id
   where p.step_id = u.step_id
     and (m.event = 'claimed' and p.status = 'running' and p.worker_id = s.lease_owner and s.error is null
          and p.error_message is null) is not true;  -- the next page of the same worker changes nothing here
  perform ingest.count_workers(m.run_id, m.to_state, m.from_state, m.step_ids, clock)
     from unnest(record_partition_moves.moves) m
    where m.run_id is not null and (m.to_state in ('completed', 'failed') or m.from_state = 'failed')
    order by m.run_id;
end
$$;
