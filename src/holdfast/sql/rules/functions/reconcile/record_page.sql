-- Stores what a step of a pass found on one page, up to the target `upto` (null: the last one). `findings` is an array
-- of objects with target_id, finding (mismatch, unverifiable or unknown), actual, actual_compare_at, actual_currency
-- and message. A worker calls it in the transaction that moves the step's cursor, so a page counts once. Each mismatch
-- is an event, whose key has no time in it. A mismatch that a later run of ours has written meanwhile is superseded.
create or replace function rules.record_page(
  step_id bigint, lease_id bigint, upto bigint, checked int, superseded int, findings jsonb)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
  part rules.pass_parts;
  pass rules.passes;
  overtaken bigint[] := '{}';
begin
  -- Locked, so that the step cannot pass to another worker before this is committed.
  perform from holdfast.steps s
    where s.id = record_page.step_id and s.lease_id = record_page.lease_id for update;
  part := rules.held_part(record_page.step_id, record_page.lease_id);
  if record_page.findings <> '[]' then
    select a.* into strict pass from rules.passes a where a.pass_id = part.pass_id;
    overtaken := array(
      select v.step_id
        from jsonb_to_recordset(record_page.findings) g (
               target_id bigint, finding text, actual bigint, actual_compare_at bigint)
        join rules.target_values v on v.step_id = g.target_id and v.run_id = part.run_id
       where g.finding = 'mismatch' and rules.is_overtaken(pass, v, g.actual, g.actual_compare_at));
    insert into rules.findings (pass_id, step_id, run_id, finding, currency, expected, expected_compare_at, actual,
                                actual_compare_at, actual_currency, difference, message, at)
    select part.pass_id, v.step_id, part.run_id, g.finding, v.currency, v.price_after, v.compare_at_after, g.actual,
           g.actual_compare_at, g.actual_currency,
           case when g.actual_currency = v.currency then
             case when v.writes_price then g.actual - v.price_after
                  else g.actual_compare_at - v.compare_at_after end end,
           left(g.message, 1000), clock
      from jsonb_to_recordset(record_page.findings) g (
             target_id bigint, finding text, actual bigint, actual_compare_at bigint, actual_currency text,
             message text)
      join rules.target_values v on v.step_id = g.target_id and v.run_id = part.run_id
     where v.step_id <> all (overtaken)
    on conflict on constraint findings_pkey do nothing;
    insert into rules.stored_events (at, event_key, tenant, event_type, payload, run_id, correlation_id, written_by)
    select clock, format('%s:%s:mismatch:%s', x.run_id, x.step_id, pass.no), pass.tenant,  -- guard: key
           'automation.reconciliation.mismatch',
           jsonb_build_object('targetId', x.step_id, 'runId', x.run_id, 'pass', pass.no, 'expected', x.expected,
                              'actual', x.actual, 'difference', x.difference),
           x.run_id, f.metadata ->> 'correlationId', session_user
      from rules.findings x join rules.run_facts f on f.run_id = x.run_id
     where x.pass_id = part.pass_id and x.finding = 'mismatch'
       and x.step_id = any (array(
             select (g ->> 'target_id')::bigint from jsonb_array_elements(record_page.findings) g))
    on conflict (event_key, tenant) do nothing;
  end if;
  update rules.pass_parts p
     set after = coalesce(record_page.upto, p.last), checked = p.checked + record_page.checked,
         superseded = p.superseded + record_page.superseded + cardinality(overtaken),
         mismatches = p.mismatches + c.mismatches - cardinality(overtaken),
         unverifiable = p.unverifiable + c.unverifiable, unknown = p.unknown + c.unknown
    from (select count(*) filter (where g.finding = 'mismatch')::int as mismatches,
                 count(*) filter (where g.finding = 'unverifiable')::int as unverifiable,
                 count(*) filter (where g.finding = 'unknown')::int as unknown
            from jsonb_to_recordset(record_page.findings) g (finding text)) c
   where p.step_id = record_page.step_id;
end
$$;
grant execute on function rules.record_page to hf_worker;
