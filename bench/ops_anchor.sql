-- The yardstick of the section ops: document 002's own functions on plain tables, completed where the document leaves
-- something out (the environment, the first event, the end of a run). They have its names and arguments, in a schema of
-- their own. They guard nothing, and do nothing for tenants, leases, limits or roles.
create schema anchor;

create table anchor.environments (
  env_id text primary key,
  project_id text not null,
  name text not null,
  unique (project_id, name)
);

create table anchor.runs (
  run_id text primary key,
  project_id text not null,
  env_id text not null,
  git_sha text,
  git_ref text,
  status text not null default 'queued' check (
    status in ('queued', 'claimed', 'running', 'success', 'failed', 'cancelled')),
  claimed_by text,
  queued_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  metadata jsonb not null default '{}',
  idempotency_key text unique
);
create index runs_status_queued_at on anchor.runs (status, queued_at);

create table anchor.run_events (
  event_id text primary key default 'evt-' || gen_random_uuid(),
  run_id text not null references anchor.runs,
  level text not null,
  message text not null,
  payload jsonb not null default '{}',
  created_at timestamptz not null default now()
);
create index run_events_run_id on anchor.run_events (run_id, created_at);

create function anchor.queue_run(
  p_project_id text, p_env text, p_git_sha text, p_git_ref text, p_metadata jsonb default '{}',
  p_idempotency_key text default null)
returns table (run_id text, status text, queued_at timestamptz)
language plpgsql security definer as $$
#variable_conflict use_column
declare
  v_run_id text;
  v_env_id text;
begin
  if p_idempotency_key is not null then
    perform 1 from anchor.runs r where r.idempotency_key = p_idempotency_key;
    if found then
      return query
      select r.run_id, r.status, r.queued_at from anchor.runs r where r.idempotency_key = p_idempotency_key;
      return;
    end if;
  end if;
  select e.env_id into v_env_id from anchor.environments e where e.project_id = p_project_id and e.name = p_env;
  if v_env_id is null then
    insert into anchor.environments values ('env-' || gen_random_uuid(), p_project_id, p_env)
    returning env_id into v_env_id;
  end if;
  v_run_id := 'run-' || gen_random_uuid();
  insert into anchor.runs (run_id, project_id, env_id, git_sha, git_ref, status, idempotency_key, metadata)
  values (v_run_id, p_project_id, v_env_id, p_git_sha, p_git_ref, 'queued', p_idempotency_key, p_metadata);
  insert into anchor.run_events (run_id, level, message) values (v_run_id, 'info', 'Run queued');
  return query select r.run_id, r.status, r.queued_at from anchor.runs r where r.run_id = v_run_id;
end
$$;

create function anchor.claim_next_run(p_worker_id text)
returns table (run_id text, project_id text, env_id text, git_sha text, git_ref text, metadata jsonb)
language plpgsql security definer as $$
#variable_conflict use_column
declare
  v_run_id text;
begin
  select r.run_id into v_run_id from anchor.runs r
   where r.status = 'queued' order by r.queued_at limit 1 for update skip locked;
  if v_run_id is null then
    return;
  end if;
  update anchor.runs set status = 'claimed', claimed_by = p_worker_id, started_at = now(), updated_at = now()
   where anchor.runs.run_id = v_run_id;
  insert into anchor.run_events (run_id, level, message, payload)
  values (v_run_id, 'info', 'Run claimed by worker', jsonb_build_object('worker_id', p_worker_id));
  return query
  select r.run_id, r.project_id, r.env_id, r.git_sha, r.git_ref, r.metadata from anchor.runs r
   where r.run_id = v_run_id;
end
$$;

create function anchor.append_event(p_run_id text, p_level text, p_message text, p_payload jsonb default '{}')
returns text
language plpgsql security definer as $$
declare
  v_event_id text;
  v_duplicate_count int;
begin
  select count(*) into v_duplicate_count from anchor.run_events
   where run_id = p_run_id and level = p_level and message = p_message
     and created_at > now() - interval '10 seconds';
  if v_duplicate_count > 0 then
    select event_id into v_event_id from anchor.run_events
     where run_id = p_run_id and level = p_level and message = p_message order by created_at desc limit 1;
    return v_event_id;
  end if;
  update anchor.runs set status = 'running', updated_at = now() where run_id = p_run_id and status = 'claimed';
  insert into anchor.run_events (run_id, level, message, payload) values (p_run_id, p_level, p_message, p_payload)
  returning event_id into v_event_id;
  return v_event_id;
end
$$;

create function anchor.finish_run(p_run_id text, p_status text, p_metadata jsonb default '{}')
returns boolean
language plpgsql security definer as $$
begin
  update anchor.runs
     set status = p_status, finished_at = now(), updated_at = now(), metadata = metadata || p_metadata
   where run_id = p_run_id;
  insert into anchor.run_events (run_id, level, message)
  values (p_run_id, case p_status when 'failed' then 'error' else 'info' end, 'Run finished: ' || p_status);
  return true;
end
$$;
