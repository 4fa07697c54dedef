-- Removes up to `batch` states that say no more than new ones would: nothing is held or parked, the bucket is full, no
-- pause or open breaker. There is one per value of a family, such as per shop, and values come and go.
create or replace function holdfast.forget_idle_limits(batch int)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
begin
  delete from holdfast.limit_states t
   where t.id = any (array(
           select s.id
             from holdfast.limit_states s
             left join lateral holdfast.limit_rule(s.name, s.tenant) r on true
            where s.held = 0 and s.parked = 0 and s.failures = 0 and s.open_until is null
              and coalesce(s.paused_until <= clock, true)
              and coalesce(s.tokens is null or holdfast.tokens_at(s, r, clock) >= r.burst, true)
            limit forget_idle_limits.batch
              for update of s skip locked));
end
$$;
