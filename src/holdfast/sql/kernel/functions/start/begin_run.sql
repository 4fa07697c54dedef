-- Makes a run with its plan, as start_run does, and returns its id; under a key that was used already, that one's. The
-- caller has called set_actor.
create or replace function holdfast.begin_run(
  machine text, name text, step_machine text, steps jsonb, input jsonb, key text, tenant text, of_run uuid,
  key_for interval default null)
returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  run_id constant uuid := holdfast.uuid7();
  hash bytea;
  taken uuid;
begin
  perform holdfast.check_start(begin_run.name, begin_run.input, 0);
  perform holdfast.check_tenant(begin_run.tenant);
  perform holdfast.check_name('key', begin_run.key, 400);
  perform holdfast.check_key_for(begin_run.key, begin_run.key_for);
  -- Locked, so that retention leaves the other run in place.
  perform from holdfast.runs r where r.id = begin_run.of_run and r.tenant = begin_run.tenant for key share;
  if begin_run.of_run is not null and not found then
    perform holdfast.refuse_pruned(begin_run.of_run::text);
    perform holdfast.refuse('RN004', format('there is no run %s of tenant %s', begin_run.of_run, begin_run.tenant),
                            '`holdfast runs list` shows them', begin_run.of_run::text);
  end if;
  if begin_run.key is not null then
    hash := sha256(convert_to(concat(begin_run.machine, ' ', begin_run.name, ' ', begin_run.input,
                                     begin_run.steps), 'UTF8'));
    taken := holdfast.take_key(begin_run.tenant, begin_run.key, run_id::text, hash, begin_run.key_for)::uuid;
    if taken <> run_id then
      return taken;
    end if;
  end if;
  perform holdfast.make_run(run_id, begin_run.machine, begin_run.name, begin_run.step_machine, begin_run.steps,
                            begin_run.input, begin_run.tenant, begin_run.of_run);
  return run_id;
end
$$;
