-- Starts a run of `machine` with its plan: an array of steps, each with its kind and, where they apply, name, input,
-- after (the names of the steps it waits for), queue, priority, policy, due_at, limits and weight. The steps follow
-- `step_machine`. Stage a large plan instead (stage_steps, take_staged). `key` works as for a task. Returns the run's
-- id.
create or replace function holdfast.start_run(
  machine text, name text, step_machine text, steps jsonb default '[]', input jsonb default '{}', key text default null,
  tenant text default 'default', of_run uuid default null)
returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  run_id constant uuid := holdfast.uuid7();
  hash bytea;
begin
  perform holdfast.check_start(start_run.name, start_run.input, 0);
  perform holdfast.check_tenant(start_run.tenant);
  perform holdfast.check_name('key', start_run.key, 400);
  if start_run.of_run is not null
     and not exists (select from holdfast.runs r where r.id = start_run.of_run and r.tenant = start_run.tenant) then
    perform holdfast.refuse('RN004', format('there is no run %s of tenant %s', start_run.of_run, start_run.tenant));
  end if;
  if start_run.key is not null then
    hash := sha256(convert_to(concat(start_run.machine, ' ', start_run.name, ' ', start_run.input,
                                     start_run.steps), 'UTF8'));
    insert into holdfast.keys values (start_run.tenant, start_run.key, run_id::text, hash) on conflict do nothing;
    if not found then
      return holdfast.id_of_key(start_run.tenant, start_run.key, hash)::uuid;
    end if;
  end if;
  perform holdfast.set_actor('api', session_user::text);
  perform holdfast.make_run(run_id, start_run.machine, start_run.name, start_run.step_machine,
                            start_run.steps, start_run.input,
                            start_run.tenant, start_run.of_run);
  perform holdfast.set_actor();
  return run_id;
end
$$;
grant execute on function holdfast.start_run to hf_producer, hf_worker, hf_operator;
