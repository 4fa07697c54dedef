-- Does one chunk of the sweep that is under way, or begins one: removes up to `batch` rows that their rules no longer
-- keep, in the caller's transaction. With `at_once` it does not wait for the time of the next sweep, nor for the day
-- after the migration. `is_through` is null while another session sweeps; `wait` says when to call again, and `months`
-- how many months of the journal are to be dropped (drop_month).
create or replace function holdfast.sweep_chunk(batch int, at_once boolean)
returns table (steps bigint, runs bigint, keys bigint, ticks bigint, months int, is_through boolean, wait interval)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  sweep holdfast.retention_sweep;
  was holdfast.retention_sweep;
  shortest constant interval := holdfast.shortest_keep();
  before bigint;
  is_over boolean := false;
begin
  if sweep_chunk.batch is null or sweep_chunk.batch not between 1 and 10000 then
    perform holdfast.refuse('RN005', format('batch must be 1 to 10000, got %s', sweep_chunk.batch), 'use 1000',
                            'batch');
  end if;
  select w.* into sweep from holdfast.retention_sweep w for update skip locked;  -- guard: one
  if sweep.begins_at is null then
    return query select 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0, null::boolean, interval '1 minute';
    return;
  end if;
  if not sweep_chunk.at_once and greatest(sweep.begins_at, sweep.next_at) > clock then
    return query select 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0, true,
                        greatest(sweep.begins_at, sweep.next_at) - clock;
    return;
  end if;
  if sweep.next_at is not null or sweep.began_at is null then
    sweep := holdfast.begun_sweep(sweep, clock);
  end if;
  was := sweep;
  loop
    before := sweep.steps + sweep.runs + sweep.keys + sweep.ticks;
    if sweep.run_left is not null then
      sweep := holdfast.prune_rest_of_run(sweep, sweep_chunk.batch);
    elsif sweep.phase = 'steps' then
      sweep := holdfast.prune_steps(sweep, sweep_chunk.batch, clock - shortest, clock);
    elsif sweep.phase = 'runs' then
      sweep := holdfast.prune_runs(sweep, sweep_chunk.batch, clock - shortest, clock);
    else
      sweep := holdfast.prune_ticks(holdfast.prune_rest(sweep, sweep_chunk.batch, clock), sweep_chunk.batch, clock);
      if before = sweep.steps + sweep.runs + sweep.keys + sweep.ticks then
        is_over := true;
      end if;
    end if;
    exit when before < sweep.steps + sweep.runs + sweep.keys + sweep.ticks or is_over
           or clock_timestamp() > statement_timestamp() + interval '50 ms';
  end loop;
  sweep.busy := sweep.busy + (clock_timestamp() - statement_timestamp());
  if is_over then
    -- Rules for days need no sweep each minute, and a sweep that takes long rests twenty times as long.
    sweep.ended_at := clock;
    sweep.next_at := clock + greatest(least(coalesce(shortest / 100, '1 hour'), '1 hour'), '1 minute', sweep.busy * 20);
  end if;
  update holdfast.retention_sweep w
     set phase = sweep.phase, step_id = sweep.step_id, run_id = sweep.run_id, run_left = sweep.run_left,
         next_at = sweep.next_at, began_at = sweep.began_at, ended_at = sweep.ended_at,
         busy = sweep.busy, steps = sweep.steps, runs = sweep.runs, keys = sweep.keys, ticks = sweep.ticks;
  return query
  select sweep.steps - was.steps, sweep.runs - was.runs, sweep.keys - was.keys, sweep.ticks - was.ticks,
         case when is_over then cardinality(holdfast.old_months(clock)) else 0 end, is_over,
         coalesce(sweep.next_at - clock, '0');
end
$$;
