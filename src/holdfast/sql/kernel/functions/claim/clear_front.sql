-- Takes back, or cancels, the steps of runs that are paused, stopped or over among the first thousand due steps of a
-- queue and priority, so that a claim gets past them.
create or replace function holdfast.clear_front(queue text, priority int, clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  found_ids constant bigint[] := array(
    select w.id
      from (select d.id, d.run_id
              from holdfast.steps d
             where d.queue = clear_front.queue and d.priority = clear_front.priority
               and holdfast.is_due(d, clear_front.clock)
             order by d.due_at, d.id
             limit 1000) w
     cross join lateral (select r.finished_at, r.halt from holdfast.runs r where r.id = w.run_id offset 0) r
     where r.finished_at is not null or r.halt in ('paused', 'stopped'));
  pick holdfast.pick;
begin
  select coalesce(array_agg(l.id), '{}'), coalesce(array_agg(l.run_id), '{}') into pick.ids, pick.run_ids
    from (select s.id, s.run_id from holdfast.steps s
           where s.id = any (found_ids)
             and holdfast.is_due(s, clear_front.clock) is true  -- not bare: read it by primary key
             for update skip locked) l;
  if pick.ids <> '{}' then
    perform holdfast.prepare_runs(pick, clear_front.clock);
  end if;
end
$$;
