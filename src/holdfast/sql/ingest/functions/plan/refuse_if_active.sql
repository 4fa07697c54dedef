-- Refuses if a feed, which the caller has locked, has a run that is not over, or a start that is still being planned.
create or replace function ingest.refuse_if_active(feed text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  active record;
begin
  select r.run_id, r.state into active from ingest.run_facts r
   where r.feed = refuse_if_active.feed and r.state not in ('completed', 'failed', 'cancelled');
  if active.run_id is null then
    select b.run_id, 'planning' as state into active
      from ingest.starts b join holdfast.steps s on s.id = b.step_id and s.finished_at is null
     where b.feed = refuse_if_active.feed
     order by b.started_at desc limit 1;
  end if;
  if active.run_id is not null then  -- guard: active
    perform holdfast.refuse(
      'RN010', format('feed %s has an active run: %s is %s', refuse_if_active.feed, active.run_id, active.state),
      format('wait for it, or cancel it: holdfast ingest cancel %s', refuse_if_active.feed), active.run_id::text);
  end if;
end
$$;
