-- Takes the due time of those of the steps whose run is paused or stopped: of a paused run they are parked until it is
-- resumed, of a stopped run they are as if they had not been admitted. Returns the runs that have no live step left and
-- are to be closed. Locks the runs, so that a resume comes before or after it.
create or replace function holdfast.halt_steps(run_ids uuid[], ids bigint[])
returns uuid[]
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_nestloop = on
set enable_hashjoin = off
set enable_mergejoin = off
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  paused uuid[];
  stopped uuid[];
  stopped_of uuid[];
  closable uuid[];
begin
  select coalesce(array_agg(l.id) filter (where l.halt = 'paused'), '{}'),
         coalesce(array_agg(l.id) filter (where l.halt = 'stopped'), '{}')
    into paused, stopped
    from (select r.id, r.halt from holdfast.runs r
           where r.id = any (halt_steps.run_ids) and r.halt in ('paused', 'stopped') order by r.id for update) l;
  if paused <> '{}' then
    update holdfast.steps s
       set due_at = null, parked_due_at = coalesce(s.due_at, s.parked_due_at), parked_for = 'run ' || s.run_id,
           limited_by = null
     where s.id = any (halt_steps.ids) and s.run_id = any (paused)
       and (s.due_at + interval '0' is not null or s.parked_for in ('handler', 'limit'));
  end if;
  if stopped <> '{}' then
    with changed as (
      update holdfast.steps s
         set due_at = null, parked_due_at = null, limited_by = null,
             -- What a person parked stays parked, and is parked again when it is admitted.
             parked_for = case when not holdfast.is_kernels_parking(s.parked_for) then s.parked_for end
       where s.id = any (halt_steps.ids) and s.run_id = any (stopped)
         and coalesce(s.due_at, s.parked_due_at) is not null
      returning s.run_id)
    select array_agg(c.run_id) into stopped_of from changed c;
    if stopped_of is not null then
      with counted as (
        update holdfast.runs r
           set live = r.live - d.steps
          from (select u.id, count(*)::int as steps from unnest(stopped_of) u (id) group by u.id order by u.id) d
         where r.id = d.id
        returning r.id, r.live, r.finished_at, r.moving)
      select array_agg(c.id) into closable
        from counted c where c.live = 0 and c.finished_at is null and c.moving is null;
    end if;
  end if;
  return coalesce(closable, '{}');
end
$$;
