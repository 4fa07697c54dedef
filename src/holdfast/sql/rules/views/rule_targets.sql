-- Targets of rule runs, in the document's words. `attempts` counts the retries since the last fresh start, `apply_seq`
-- all tries before the last one: it is the last part of the key of the try's event. Uncharged tries are only in
-- the journal, which is read if the target was claimed more often than it has failures. `found_json` is what the
-- channel showed where it was neither before nor after; `later_run_id` is the run of ours that wrote it, if it was one.
create or replace view rules.rule_targets with (security_invoker = true) as
select n.step_id as id, n.run_id as rule_run_id, v.item_id,
       f.includes_others <> exists (select from rules.exceptions e where e.run_id = n.run_id and e.step_id = n.step_id)
         as included,
       s.state as status,
       greatest(s.failures - (s.state = 'FAILED')::int, 0) as attempts,
       greatest(case when s.attempt - (s.state in ('APPLYING', 'APPLIED', 'ROLLED_BACK'))::int
                            = coalesce(m.tries_before, 0) + s.failures
                     then s.attempt - (s.state in ('APPLYING', 'APPLIED', 'ROLLED_BACK'))::int
                     else (select count(*)::int from holdfast.journal j
                            where j.step_id = s.id and j.event in ('retried', 'failed', 'expired')) end
                - (s.state = 'FAILED')::int, 0) as apply_seq,
       jsonb_build_object('unit_amount', v.price_before, 'currency', v.currency, 'compare_at', v.compare_at_before)
         as before_json,
       jsonb_build_object('unit_amount', v.price_after, 'currency', v.currency, 'compare_at', v.compare_at_after)
         as after_json,
       case when s.state = 'FAILED' then coalesce(s.error ->> 'reason', case
              when s.error ->> 'unknown' = 'true' or s.error ->> 'type' = 'LeaseExpired' then 'outcome_unknown'
              when s.failures >= (select p.tries from holdfast.step_policy(s.policy, s.kind, s.machine, s.tenant) p)
              then 'max_retries' else 'unrecoverable' end) end as reason,
       holdfast.error_text(s.error) as error,
       case when s.state = 'FAILED' then coalesce(s.error ->> 'reason', '') not in ('stale', 'conflict') and coalesce(
              case when jsonb_typeof(s.error -> 'retryable') = 'boolean' then (s.error -> 'retryable')::boolean end,
              coalesce(s.error ->> 'class', '') not in ('NOT_FOUND', 'AUTHORIZATION', 'VALIDATION')) end as retryable,
       case s.state when 'APPLIED' then s.finished_at
                    when 'ROLLED_BACK' then (select l.at from rules.ledger l where l.step_id = s.id) end as applied_at,
       s.claimed_at as last_attempt_at, coalesce(s.due_at, s.parked_due_at) as next_due_at,
       case when s.state = 'FAILED' then (select x.resolved_at from holdfast.resolutions x
                                           where x.step_id = s.id and x.resolved_at >= s.finished_at) end
         as resolved_at,
       s.tenant as tenant_id, s.error ->> 'class' as error_class, s.error -> 'found' as found_json,
       v.writes_price, v.writes_compare_at, (s.error #>> '{later,run_id}')::uuid as later_run_id
  from holdfast.run_steps n
  join rules.run_facts f on f.run_id = n.run_id
  join rules.target_values v on v.step_id = n.step_id
  join holdfast.steps s on s.id = n.step_id
  left join rules.target_marks m on m.step_id = n.step_id
 where coalesce(f.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on rules.rule_targets to hf_producer, hf_worker, hf_reader, hf_operator;
