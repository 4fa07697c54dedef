-- Makes an environment of a project, or replaces what is said of it, and returns its id. `p_type` is dev, staging or
-- prod. `p_branch_pattern` says which pushes queue a run of `p_kind` (`main`, `release/*`, `refs/tags/v*`). `p_on_push`
-- says what a new push does to older runs of the same ref: queue (nothing), cancel_queued, or cancel_all, which cancels
-- the running one as well. `p_concurrency` is how many runs go on at once, `p_queue_ttl` how long one may wait.
create or replace function ops.define_environment(
  p_project_id text, p_env text, p_type text default null, p_branch_pattern text default null,
  p_needs_approval boolean default false, p_on_push text default 'queue', p_concurrency int default null,
  p_queue_ttl interval default null, p_kind text default 'deploy', p_tenant text default 'default')
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  actor constant text := session_user;
  place ops.known_environments;
begin
  perform holdfast.check_tenant(p_tenant);
  perform ops.refuse_request(p_project_id, p_env, coalesce(p_kind, ''), null, null, null, null);
  perform holdfast.check_name('branch_pattern', nullif(p_branch_pattern, '*'), 400);  -- * is every branch
  if p_type not in ('dev', 'staging', 'prod') then
    perform holdfast.refuse('RN005', format('type must be dev, staging or prod, got %s', p_type), 'leave it out',
                            'p_type');
  end if;
  if p_on_push is null or p_on_push not in ('queue', 'cancel_queued', 'cancel_all') then
    perform holdfast.refuse('RN005', format('on_push must be queue, cancel_queued or cancel_all, got %s', p_on_push),
                            'queue changes no older run', 'p_on_push');
  end if;
  if p_concurrency < 1 then
    perform holdfast.refuse('RN005', format('concurrency must be 1 or more, got %s', p_concurrency),
                            'leave it out for any number', 'p_concurrency');
  end if;
  if p_queue_ttl <= '0' then
    perform holdfast.refuse('RN005', format('queue_ttl must be longer than 0, got %s', p_queue_ttl),
                            'leave it out for no limit', 'p_queue_ttl');
  end if;
  place := ops.register_environment(p_tenant, p_project_id, p_env, actor);
  update ops.known_environments e
     set type = coalesce(p_type, e.type), branch_pattern = p_branch_pattern,
         needs_approval = coalesce(p_needs_approval, false), on_push = p_on_push, concurrency = p_concurrency,
         queue_ttl = p_queue_ttl, kind = p_kind
   where e.env_id = place.env_id;
  if p_concurrency is not null then
    perform holdfast.define_limit('env:' || place.env_id, p_concurrency, tenant => p_tenant);
  elsif place.concurrency is not null then
    perform holdfast.forget_limit('env:' || place.env_id, 'its environment has no concurrency any more', p_tenant);
  end if;
  return place.env_id;
end
$$;
grant execute on function ops.define_environment to hf_operator;
