-- The state of steps, for whoever holds their handles: `outcome` is null until a step ends, `started_at` is when its
-- latest attempt was claimed, `reason` is that of its last move, where a person gave one. The counts are null: only a
-- run has them. Sees what its caller may see.
create or replace function holdfast.step_status(step_ids bigint[])
returns table (id bigint, name text, state text, phase text, outcome text, step text, attempts int, error jsonb,
               reason text, created_at timestamptz, started_at timestamptz, finished_at timestamptz,
               total int, succeeded int, failed int, cancelled int)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by primary key, whatever the statistics say
set jit = off
as $$
begin
  return query
  select s.id, s.kind, s.state, s.phase, s.outcome, null::text, s.attempt, s.error,
         (select j.reason from holdfast.journal j where j.step_id = s.id order by j.id desc limit 1),
         s.created_at, s.claimed_at, s.finished_at, null::int, null::int, null::int, null::int
    from holdfast.step_list s
   where s.id = any (step_status.step_ids);
end
$$;
grant execute on function holdfast.step_status to hf_producer, hf_worker, hf_reader, hf_operator;
