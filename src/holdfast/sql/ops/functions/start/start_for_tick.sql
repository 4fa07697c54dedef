-- Queues the runs of a schedule's tick: one of kind `target` per environment, of those that the input names by
-- project_id and env (both optional). The input may also have git_sha, git_ref and metadata; the options are priority
-- and ttl. Returns the ids of the runs. The target `monitor` sweeps stale runs instead, and returns its own name: it
-- starts nothing that could be open. The caller has called set_actor.
create or replace function ops.start_for_tick(target text, input jsonb, options jsonb, tenant text)
returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  kind constant text := coalesce(current_setting('holdfast.actor_kind', true), '');
  actor constant text := coalesce(nullif(current_setting('holdfast.actor', true), ''), session_user);
  reason constant text := coalesce(current_setting('holdfast.reason', true), '');
  place ops.known_environments;
  ids text[] := '{}';
begin
  perform holdfast.refuse_options('ops', start_for_tick.options, '{priority,ttl}');
  if start_for_tick.target = 'monitor' then
    perform from ops.sweep_runs(start_for_tick.tenant);
    perform holdfast.set_actor(kind, actor, reason);
    return '{monitor}';
  end if;
  for place in
    select e.* from ops.known_environments e
     where e.tenant = start_for_tick.tenant
       and holdfast.matches(start_for_tick.input ->> 'project_id', e.project_id)
       and holdfast.matches(start_for_tick.input ->> 'env', e.name)
     order by e.env_id
  loop
    ids := ids || (ops.begin_run(
      place.project_id, place.name, start_for_tick.input ->> 'git_sha', start_for_tick.input ->> 'git_ref',
      ops.checked_metadata(start_for_tick.input -> 'metadata') || '{"trigger": "schedule"}', null,
      jsonb_build_object('kind', start_for_tick.target, 'priority', start_for_tick.options -> 'priority',
                         'ttl', start_for_tick.options -> 'ttl', 'by_schedule', true),
      actor, start_for_tick.tenant)).run_id;
  end loop;
  if ids = '{}' then
    perform holdfast.refuse(
      'RN004', format('no environment of tenant %s matches the schedule of %s', start_for_tick.tenant,
                      start_for_tick.target),
      'ops.environments lists them; check project_id and env in its input', 'input');
  end if;
  return ids;
end
$$;
