-- Whether a worker that was last seen at `seen_at` counts as live. The only definition; PostgreSQL inlines it.
create or replace function holdfast.is_live_worker(seen_at timestamptz, clock timestamptz)
returns boolean
language sql stable
begin atomic
  select is_live_worker.seen_at > is_live_worker.clock - interval '150 s';
end;
grant execute on function holdfast.is_live_worker to hf_producer, hf_worker, hf_reader, hf_operator;
