-- Returns how the sweep stands: when the first one begins, and what the one that is under way, or the last one,
-- removed. The row itself has ids of all tenants, so it is not readable.
create or replace function holdfast.sweep_state()
returns table (begins_at timestamptz, next_at timestamptz, began_at timestamptz, ended_at timestamptz, steps bigint,
               runs bigint, keys bigint, ticks bigint, blocked_month text, blocked_at timestamptz)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select w.begins_at, w.next_at, w.began_at, w.ended_at, w.steps, w.runs, w.keys, w.ticks, w.blocked_month, w.blocked_at
    from holdfast.retention_sweep w
$$;
grant execute on function holdfast.sweep_state to hf_producer, hf_worker, hf_reader, hf_operator;
