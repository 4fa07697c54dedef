-- Makes a run of a project's environment, or returns the one that has the idempotency key already, whatever became of
-- it. `options` may have kind, priority, due_at, ttl, retry_of and rollback_of. The run waits for an approval if its
-- environment requires one. `actor` is whoever asked for it.
create or replace function ops.begin_run(
  project_id text, env text, git_sha text, git_ref text, metadata jsonb, key text, options jsonb, actor text,
  tenant text)
returns ops.run_facts
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column  -- `on conflict` cannot qualify its columns
declare
  clock constant timestamptz := holdfast.clock();
  run_kind constant text := coalesce(options ->> 'kind', begin_run.metadata ->> 'kind', 'deploy');
  own_id constant text := 'run-' || gen_random_uuid();
  known record;  -- the environment, and the queue of the kind
  place ops.known_environments;
  facts ops.run_facts;
begin
  if (holdfast.is_name(begin_run.project_id) and holdfast.is_name(begin_run.env, 100)
      and holdfast.is_name(run_kind, 100) and coalesce(holdfast.is_name(begin_run.git_sha), true)
      and coalesce(holdfast.is_name(begin_run.git_ref, 400), true)
      and coalesce(holdfast.is_name(begin_run.key, 400), true)
      and holdfast.is_name(begin_run.actor)) is not true then  -- a call costs more
    perform ops.refuse_request(begin_run.project_id, begin_run.env, run_kind, begin_run.git_sha, begin_run.git_ref,
                               begin_run.key, begin_run.actor);
  end if;
  if begin_run.key is not null then
    perform holdfast.check_tenant(begin_run.tenant);  -- start_step does, but here a run may be given away before
    select f.* into facts from ops.run_facts f
     where f.tenant = begin_run.tenant and f.idempotency_key = begin_run.key;
    if found then
      return facts;
    end if;
  end if;
  select e as place, k.queue into known
    from (select) one
    left join ops.known_environments e
      on e.tenant = begin_run.tenant and e.project_id = begin_run.project_id and e.name = begin_run.env
    left join lateral (select d.queue from holdfast.kinds d  -- as kinds_of has it, at half the cost
                        where d.kind = 'ops:' || run_kind and d.tenant in (begin_run.tenant, '*')
                        order by d.tenant = '*'
                        limit 1) k on true;
  place := known.place;
  if place.env_id is null then
    place := ops.new_environment(begin_run.tenant, begin_run.project_id, begin_run.env, begin_run.actor);
  end if;
  if begin_run.key is not null then
    insert into ops.run_facts (run_id, tenant, idempotency_key, kind, queued_at, updated_at)
    values (own_id, begin_run.tenant, begin_run.key, run_kind, clock, clock)
    on conflict (tenant, idempotency_key) where idempotency_key is not null do nothing;  -- guard: key
    if not found then
      select f.* into strict facts from ops.run_facts f
       where f.tenant = begin_run.tenant and f.idempotency_key = begin_run.key;
      return facts;
    end if;
  end if;
  facts.step_id := holdfast.make_step(
    'ops.run', 'ops:' || run_kind,
    jsonb_strip_nulls(jsonb_build_object(
      'run_id', own_id, 'project_id', begin_run.project_id, 'env_id', place.env_id, 'env', begin_run.env,
      'git_sha', begin_run.git_sha, 'git_ref', begin_run.git_ref, 'queued_by', begin_run.actor,
      'retry_of', options -> 'retry_of', 'rollback_of', options -> 'rollback_of',
      'expires_at', greatest((options ->> 'due_at')::timestamptz, clock)
                    + coalesce((options ->> 'ttl')::interval, place.queue_ttl)))
      || jsonb_build_object('metadata', begin_run.metadata),
    queue => coalesce(known.queue, 'ops'),
    due_at => (options ->> 'due_at')::timestamptz, priority => coalesce((options ->> 'priority')::int, 0),
    tenant => begin_run.tenant, parked_for => case when place.needs_approval then 'approval' end,
    actor => begin_run.actor,
    limits => case when place.concurrency is not null then array['env:' || place.env_id] end, is_by_face => true);
  if place.needs_approval then
    insert into ops.run_approvals (step_id, tenant, requested_by, requested_login, requested_at, expires_at)
    values (facts.step_id, begin_run.tenant, begin_run.actor,
            case when options -> 'by_schedule' is null then session_user end,  -- a tick's login asked for nothing
            clock, clock + interval '24 hours');
  end if;
  select f.* into strict facts from ops.run_facts f where f.run_id = own_id;
  return facts;
end
$$;
