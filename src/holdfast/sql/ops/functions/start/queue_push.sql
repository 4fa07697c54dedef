-- Queues a run for a push: the repository selects the project, each environment whose branch pattern matches gets one
-- run, and older runs of the same ref are cancelled as the environment says. Returns the runs, none if nothing matches.
-- The same `p_idempotency_key` returns the same runs (`is_new` is false) and cancels nothing.
create or replace function ops.queue_push(
  p_repository text, p_git_ref text, p_git_sha text, p_metadata jsonb default '{}', p_idempotency_key text default null,
  p_actor text default null, p_tenant text default 'default')
returns table (run_id text, status text, queued_at timestamptz, project_id text, env_id text, is_new boolean)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set jit = off
set plan_cache_mode = force_generic_plan  -- one plan is left: make it once, not per call
as $$
declare
  given constant jsonb := ops.checked_metadata(p_metadata);
  actor constant text := coalesce(p_actor, session_user);
  place ops.known_environments;
  facts ops.run_facts;
  key text;
begin
  perform holdfast.check_tenant(p_tenant);
  for place in
    select e.* from ops.known_projects p
      join ops.known_environments e on e.tenant = p.tenant and e.project_id = p.project_id
     where p.tenant = p_tenant and lower(p.repository) = lower(p_repository)
       and ops.matches_branch(e.branch_pattern, p_git_ref)
     order by e.env_id
  loop
    if place.on_push <> 'queue' then
      -- One push after the other: each sees the runs of those before it.
      perform from ops.known_environments e where e.env_id = place.env_id for no key update;  -- guard: push
    end if;
    key := p_idempotency_key || ':' || place.env_id;
    queue_push.is_new := not exists (select from ops.run_facts f where f.tenant = p_tenant and f.idempotency_key = key);
    facts := ops.begin_run(place.project_id, place.name, p_git_sha, p_git_ref, given, key,
                           jsonb_build_object('kind', place.kind), actor, p_tenant);
    if queue_push.is_new and place.on_push <> 'queue' then
      perform ops.supersede(facts, place.on_push);
    end if;
    queue_push.run_id := facts.run_id;
    queue_push.status := facts.status;
    queue_push.queued_at := facts.queued_at;
    queue_push.project_id := facts.project_id;
    queue_push.env_id := facts.env_id;
    return next;
  end loop;
end
$$;
grant execute on function ops.queue_push to hf_producer, hf_worker, hf_operator;
