-- Returns the runs that are to get more steps: those that have three quarters of a window of live steps or less, so
-- that the next lot is there while workers are still busy with the last.
create or replace function holdfast.runs_to_fill(most int)
returns uuid[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  return array(
    select r.id from holdfast.runs r
     where r.to_admit > 0 and r.halt is null and r.finished_at is null
       and r.live <= r.window_size * 3 / 4  -- guard: ahead
     order by r.id
     limit runs_to_fill.most);
end
$$;
