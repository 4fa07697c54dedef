-- Returns one word for a worker that was last seen at `seen_at`: alive, late (its leases may still be valid) or gone.
create or replace function holdfast.worker_standing(seen_at timestamptz, clock timestamptz)
returns text
language sql stable
begin atomic
  select case when worker_standing.seen_at > worker_standing.clock - interval '45 s' then 'alive'
              when holdfast.is_live_worker(worker_standing.seen_at, worker_standing.clock) then 'late'
              else 'gone' end;
end;
grant execute on function holdfast.worker_standing to hf_producer, hf_worker, hf_reader, hf_operator;
