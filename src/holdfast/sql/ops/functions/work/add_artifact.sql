-- Registers what a claimed or running run produced, with an event, and returns its id. The same type and address again
-- returns the existing one. With `p_worker_id` only the worker that claimed the run can add to it.
create or replace function ops.add_artifact(
  p_run_id text, p_type text, p_url text, p_digest text default null, p_size_bytes bigint default null,
  p_metadata jsonb default '{}', p_worker_id text default null)
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set jit = off
set plan_cache_mode = force_generic_plan  -- one plan is left: make it once, not per call
as $$
#variable_conflict use_column  -- `on conflict` cannot qualify its columns
declare
  clock constant timestamptz := holdfast.clock();
  given constant jsonb := ops.checked_metadata(p_metadata);
  held record;
  step holdfast.steps;
  facts ops.run_facts;
  id text;
begin
  perform holdfast.check_name('type', coalesce(p_type, ''), 100);
  perform holdfast.check_name('url', coalesce(p_url, ''), 4000);
  perform holdfast.check_name('digest', p_digest);
  if p_size_bytes < 0 then
    perform holdfast.refuse('RN005', format('size must not be negative, got %s', p_size_bytes), 'give it in bytes',
                            'p_size_bytes');
  end if;
  select * into held from ops.lock_run(p_run_id);
  step := held.step;
  facts := held.facts;
  perform ops.check_worker(facts, p_worker_id);
  id := (select a.artifact_id from ops.run_artifacts a
          where a.step_id = step.id and a.type = p_type and md5(a.url) = md5(p_url));
  if id is not null then
    return id;
  end if;
  if step.lease_id is null then
    perform holdfast.refuse('RN010', format('run %s is %s and takes no artifact', facts.run_id, step.state),
                            'add artifacts between the claim of a run and its end', 'p_run_id');
  end if;
  perform holdfast.report_on(step, coalesce(facts.lease, interval '5 minutes'), true, clock);
  insert into ops.run_artifacts (artifact_id, step_id, tenant, type, url, digest, size_bytes, metadata, created_at)
  values ('art-' || gen_random_uuid(), step.id, step.tenant, p_type, p_url, p_digest, p_size_bytes, given, clock)
  returning artifact_id into id;
  perform holdfast.write_note(step, 'info', 'Artifact added: ' || p_type, jsonb_strip_nulls(jsonb_build_object(
    'artifact_id', id, 'type', p_type, 'url', p_url, 'digest', p_digest, 'size_bytes', p_size_bytes)), null, clock);
  return id;
end
$$;
grant execute on function ops.add_artifact to hf_worker;
