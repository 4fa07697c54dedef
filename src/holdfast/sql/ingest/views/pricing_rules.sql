-- Pricing rules: of those that fit a record, the one with the lowest priority applies.
create or replace view ingest.pricing_rules with (security_invoker = true) as
select p.id, p.feed, p.priority, p.criteria, p.markup, p.rating, p.created_at, p.tenant
  from ingest.prices p
 where coalesce(p.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on ingest.pricing_rules to hf_producer, hf_worker, hf_reader, hf_operator;
