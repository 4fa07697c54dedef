-- Returns the hash of a run's plan, computed from the plan and from each target: SHA-256 of the plan's JSON text and of
-- the SHA-256 digests of its targets in groups of 1000. Targets are taken by item_id, in the order of its bytes; each
-- is a line of its values, separated by tabs and with nothing for a null. Groups keep the text short.
create or replace function rules.plan_digest(run_id uuid, plan jsonb)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by run: statistics may say that all targets are of one
as $$
  select encode(sha256(convert_to(plan_digest.plan::text, 'UTF8')
                       || coalesce(string_agg(g.digest, ''::bytea order by g.no), '')), 'hex')
    from (select t.no, sha256(convert_to(string_agg(t.line, e'\n' order by t.item_id), 'UTF8')) as digest
            from (select (row_number() over (order by v.item_id) - 1) / 1000 as no, v.item_id,
                         concat(v.item_id, e'\t', v.currency, e'\t', v.price_before, e'\t', v.price_after, e'\t',
                                v.compare_at_before, e'\t', v.compare_at_after, e'\t', v.writes_price, e'\t',
                                v.writes_compare_at) as line
                    from rules.target_values v where v.run_id = plan_digest.run_id) t
           group by t.no) g;
$$;
