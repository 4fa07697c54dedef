-- Ticks of schedules, what became of them and what they started. `tick_at` is the nominal time and `due_at` the one
-- that `spread` shifted it to. A row of many missed ticks says how many, up to `until_at`.
create or replace view holdfast.schedule_ticks with (security_invoker = true) as
select t.name, t.tenant, t.at as tick_at, t.due_at, t.fired_at, t.cause, t.outcome, t.face, t.ids, t.cancelled,
       holdfast.error_text(t.error) as error, t.error ->> 'next' as next, t.ticks, t.until_at, t.actor
  from holdfast.ticks t
 where coalesce(t.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select on holdfast.schedule_ticks to hf_producer, hf_worker, hf_reader, hf_operator;
