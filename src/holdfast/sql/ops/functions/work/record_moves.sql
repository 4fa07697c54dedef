-- Keeps ops.run_facts: the kernel calls it with the runs that moved, whichever path moved them. A new run gets its
-- facts from its input. A run that is cancelled gets who did it and why, a stale one also whose it was.
create or replace function ops.record_moves(moves holdfast.shared_move[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set jit = off
set plan_cache_mode = force_generic_plan  -- one plan is left: make it once, not per call
as $$
declare
  clock constant timestamptz := holdfast.clock();
  actor constant text := coalesce(nullif(current_setting('holdfast.actor', true), ''), session_user);
  why constant text := nullif(current_setting('holdfast.reason', true), '');
  made bigint;
begin
  if record_moves.moves[1].event = 'created' then
    insert into ops.run_facts as f (
      run_id, step_id, queued_at, updated_at, expires_at, tenant, kind, project_id, env_id, env, git_sha, git_ref,
      queued_by, retry_of, rollback_of, metadata)
    select coalesce(s.input ->> 'run_id', 'run-' || gen_random_uuid()), s.id, s.created_at, s.created_at,
           (s.input ->> 'expires_at')::timestamptz, s.tenant,
           case when starts_with(s.kind, 'ops:') then substr(s.kind, 5) else s.kind end,
           s.input ->> 'project_id', s.input ->> 'env_id', s.input ->> 'env', s.input ->> 'git_sha',
           s.input ->> 'git_ref', s.input ->> 'queued_by', s.input ->> 'retry_of', s.input ->> 'rollback_of',
           case when jsonb_typeof(s.input -> 'metadata') = 'object' then s.input -> 'metadata' else '{}' end
      from unnest(record_moves.moves) m, unnest(m.step_ids) u (step_id)
      join holdfast.steps s on s.id = u.step_id
    on conflict (run_id) do update  -- reserved with its idempotency key
      set step_id = excluded.step_id, queued_at = excluded.queued_at, updated_at = excluded.updated_at,
          expires_at = excluded.expires_at, kind = excluded.kind, project_id = excluded.project_id,
          env_id = excluded.env_id, env = excluded.env, git_sha = excluded.git_sha, git_ref = excluded.git_ref,
          queued_by = excluded.queued_by, retry_of = excluded.retry_of, rollback_of = excluded.rollback_of,
          metadata = excluded.metadata
      where f.step_id is null and f.tenant = excluded.tenant;
    get diagnostics made = row_count;
    if made < cardinality(record_moves.moves[1].step_ids) then  -- guard: facts; new runs are one move
      perform holdfast.refuse('RN003', 'the id of a new run is in use', 'queue a run with ops.queue_run');
    end if;
    return;
  end if;
  update ops.run_facts f
     set status = m.to_state, updated_at = clock,
         claimed_by = coalesce(s.lease_owner, f.claimed_by),
         -- Not before they were queued, or claimed, even if the server's clock was set back.
         started_at = coalesce(f.started_at, case when s.lease_owner is not null
                                                  then greatest(f.queued_at, s.claimed_at) end),
         running_at = coalesce(f.running_at, case when m.to_state = 'running' then greatest(f.started_at, clock) end),
         finished_at = case when s.finished_at is not null
                            then greatest(s.finished_at, coalesce(f.running_at, f.started_at, f.queued_at)) end,
         lease = case when m.event = 'claimed' then s.lease_until - s.claimed_at else f.lease end,
         metadata = f.metadata || case
           when m.event = 'expired' then jsonb_build_object(
             'cancelled_by', 'system', 'reason', ops.stale_reason(m.from_state, f.started_at, clock),
             'original_worker', f.claimed_by, 'claimed_at', f.started_at)
           when m.to_state = 'cancelled' then jsonb_strip_nulls(jsonb_build_object(
             'cancelled_by', actor, 'reason', why, 'timestamp', clock))
           when m.to_state = 'success' and jsonb_typeof(s.result) = 'object' then s.result
           when m.to_state = 'failed' and s.error is not null then
             jsonb_build_object('error', holdfast.error_text(s.error))
             || case when jsonb_typeof(s.error -> 'metadata') = 'object' then s.error -> 'metadata' else '{}' end
           else '{}' end
    from unnest(record_moves.moves) m, unnest(m.step_ids) u (step_id)
    join holdfast.steps s on s.id = u.step_id
   where f.step_id = u.step_id;
  if cardinality(record_moves.moves) = 1 and record_moves.moves[1].to_state <> 'cancelled' then
    return;  -- most calls: the statement below costs more
  end if;
  if exists (select from unnest(record_moves.moves) m where m.from_state = 'queued' and m.to_state = 'cancelled') then
    update ops.run_approvals a
       set decision = 'cancelled', decided_by = actor, decided_at = clock, reason = why
     where a.decision is null
       and a.step_id = any (array(select u.step_id from unnest(record_moves.moves) m, unnest(m.step_ids) u (step_id)));
  end if;
end
$$;
