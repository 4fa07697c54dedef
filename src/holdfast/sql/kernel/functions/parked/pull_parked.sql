-- Up to `wanted` steps of one queue and priority that are parked on limits which may admit a step now, locked unless
-- `is_batched` (pull_calls locks those): the first of each limit's queue, but for the limits `full_ids` and the steps
-- `taken`. They stay parked until they are claimed. Kinds that no live worker serves leave the limit's queue; what
-- others serve is passed over within a window.
create or replace function holdfast.pull_parked(
  queue text, priority int, kinds text[], tenants text[], machine text, wanted int, full_ids bigint[],
  taken bigint[], clock timestamptz, is_batched boolean default false)
returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_nestloop = on
set enable_hashjoin = off
set enable_mergejoin = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = on
set jit = off
as $$
declare
  pulled bigint[];
  passed bigint[];
begin
  if not exists (select from holdfast.limit_states t where t.wake_at <= pull_parked.clock) then
    return '{}';
  end if;
  with open as materialized (
    select t.id,
           least(pull_parked.wanted, case when t.open_until is not null then 1
                                          when r.concurrency is not null then greatest(r.concurrency - t.held, 1)
                                          end) as room
      from (select s.* from holdfast.limit_states s
             where s.wake_at <= pull_parked.clock and s.id <> all (pull_parked.full_ids)
             order by s.wake_at, s.id
             limit 1000) t
      left join lateral holdfast.limit_rule(t.name, t.tenant) r on true),
  heads as materialized (
    select h.id, h.parked_due_at, o.room, o.id as limit_id,
           holdfast.matches_any(pull_parked.kinds, h.kind)
           and holdfast.matches_any(pull_parked.tenants, h.tenant)
           and holdfast.matches(pull_parked.machine, h.machine) as is_served
      from open o
     cross join lateral (
       select p.id, p.parked_due_at, p.kind, p.tenant, p.machine
         from holdfast.steps p
        where p.limited_by = o.id and p.queue = pull_parked.queue and coalesce(p.parked_for, '') = 'limit'
          and p.priority = pull_parked.priority and p.id <> all (pull_parked.taken)
        order by p.parked_due_at, p.id
        limit o.room + case when pull_parked.kinds is null and pull_parked.tenants is null
                                 and pull_parked.machine is null then 0 else 200 end) h),
  ranked as (
    select h.id, h.parked_due_at, h.is_served, h.room,
           row_number() over (partition by h.limit_id, h.is_served order by h.parked_due_at, h.id) as place
      from heads h)
  select array(select k.id from ranked k where k.is_served and k.place <= k.room
                order by k.parked_due_at, k.id limit pull_parked.wanted),
         array(select k.id from ranked k where not k.is_served)
    into pulled, passed;
  if passed <> '{}' then
    perform holdfast.park_unserved(pull_parked.queue, passed, pull_parked.clock);
  end if;
  return case when pull_parked.is_batched then pulled else holdfast.lock_parked(pulled) end;
end
$$;
