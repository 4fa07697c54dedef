-- Writes the alert of a consolidation's first failed delivery in a round (C-29); the run's own move writes the one of
-- its last.
create or replace function ingest.record_consolidation_moves(moves holdfast.shared_move[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- The lock is a statement of its own: of batches that fail together, the second must see the alert of the first.
  perform from ingest.run_facts r
    where r.run_id in (select m.run_id from unnest(record_consolidation_moves.moves) m
                        where m.event in ('retried', 'expired'))
    order by r.run_id for no key update;  -- guard: lock
  perform ingest.add_event(
            r, 'alert', format('Run %s failed. Watermark NOT advanced.', r.run_id),
            jsonb_build_object('title', 'Consolidation Failed', 'round', r.rounds, 'worker', ingest.acting_worker(),
                               'reason', (select holdfast.error_text(s.error) from holdfast.steps s
                                           where s.id = m.step_ids[1])), 'warning')
     from unnest(record_consolidation_moves.moves) m
     join ingest.run_facts r on r.run_id = m.run_id
    where m.event in ('retried', 'expired')
      and not exists (select from ingest.event_log e
                       where e.run_id = r.run_id and e.event = 'alert' and (e.body ->> 'round')::int = r.rounds);
end
$$;
