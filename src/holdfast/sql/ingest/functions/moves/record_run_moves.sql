-- Keeps ingest.run_facts and writes events: the kernel calls it with the runs that moved, whichever path moved them.
-- The move that completes a run also moves its feed's watermark, never back. A run that is not its feed's newest is not
-- reopened or queued again: a later run has taken its place.
create or replace function ingest.record_run_moves(moves holdfast.shared_move[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  move holdfast.shared_move;
  facts ingest.run_facts;
begin
  foreach move in array record_run_moves.moves loop
    if move.from_state = 'failed' then
      perform ingest.check_again(move);
    end if;
    update ingest.run_facts r
       set state = move.to_state,
           completed_at = case when move.to_state = 'completed' then clock end,
           watermark_after = case when move.to_state = 'completed' and r.advances then
                                    greatest(r.updated_to, r.watermark_before)  -- guard: watermark
                             end,
           reason = case when move.to_state in ('failed', 'cancelled') then ingest.reason_of(r) end
     where r.run_id = move.run_id
    returning r.* into facts;
    continue when not found;
    if facts.watermark_after is not null then
      insert into ingest.feed_watermarks as w (feed, tenant, last_updated_at, last_run_id, last_run_completed_at,
                                               changed_at)
      values (facts.feed, facts.tenant, facts.watermark_after, facts.run_id, facts.completed_at, clock)
      on conflict (feed) do update
        set last_updated_at = greatest(w.last_updated_at, excluded.last_updated_at),
            last_run_id = excluded.last_run_id, last_run_completed_at = excluded.last_run_completed_at,
            changed_at = excluded.changed_at;
    end if;
    perform ingest.add_event(facts, 'run.' || move.to_state, facts.reason, jsonb_build_object(
      'from', move.from_state, 'completed', facts.completed_workers, 'failed', facts.failed_workers,
      'expected', facts.expected_workers, 'worker', ingest.acting_worker()));
    if move.to_state = 'failed' then
      perform ingest.add_event(
        facts, 'alert', format('Run %s failed. Watermark NOT advanced.', facts.run_id),
        jsonb_build_object('title', case when move.from_state = 'consolidation_skipped' then 'Consolidation Skipped'
                                         else 'Consolidation Failed' end, 'reason', facts.reason,
                           'worker', ingest.acting_worker()), 'critical');
    end if;
  end loop;
end
$$;
