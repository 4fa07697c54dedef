-- Whether steps of a run are parked because it is, or was, paused.
create or replace function holdfast.has_parked(run_id uuid)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  return exists (
    select from holdfast.queues q
     cross join lateral (select p.id from holdfast.steps p
                          where p.queue = q.queue and p.parked_for = 'run ' || has_parked.run_id limit 1) s);
end
$$;
