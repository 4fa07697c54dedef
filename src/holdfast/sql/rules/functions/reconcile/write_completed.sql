-- Writes the event of a pass that ended, with its counts. A pass that is reopened and ends again is the same event.
create or replace function rules.write_completed(pass rules.passes, facts rules.run_facts, state text)
returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  insert into rules.stored_events (at, event_key, tenant, event_type, payload, run_id, correlation_id, written_by)
  select holdfast.clock(), format('%s:reconciliation:%s', pass.run_id, pass.no), pass.tenant,
         'automation.reconciliation.completed',
         jsonb_build_object('runId', pass.run_id, 'pass', pass.no, 'kind', pass.pass, 'status', write_completed.state,
                            'totalChecked', coalesce(sum(p.checked), 0), 'mismatches', coalesce(sum(p.mismatches), 0),
                            'superseded', coalesce(sum(p.superseded), 0),
                            'unverifiable', coalesce(sum(p.unverifiable), 0), 'unknown', coalesce(sum(p.unknown), 0)),
         pass.run_id, facts.metadata ->> 'correlationId', session_user
    from rules.pass_parts p where p.pass_id = pass.pass_id
  on conflict (event_key, tenant) do nothing;
$$;
