-- Feeds, each with its watermark and its newest run.
create or replace view ingest.feeds with (security_invoker = true) as
select f.feed, f.tenant, f.raw_name, f.settings, f.defined_at, w.last_updated_at as watermark, n.run_id, n.state
  from ingest.known_feeds f
  left join ingest.feed_watermarks w on w.feed = f.feed
  left join lateral (select r.run_id, r.state from ingest.run_facts r
                      where r.feed = f.feed order by r.no desc limit 1) n on true
 where coalesce(f.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on ingest.feeds to hf_producer, hf_worker, hf_reader, hf_operator;
