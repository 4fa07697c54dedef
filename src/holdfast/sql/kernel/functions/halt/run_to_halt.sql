-- Returns the run with that id, as run_to_change does, for a caller that wants to pause, resume or stop it. Refuses a
-- login that is not in the role that the run's machine asks for. As there, session_user is the login.
create or replace function holdfast.run_to_halt(id text, reason text, actor text)
returns holdfast.runs
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  run constant holdfast.runs := holdfast.run_to_change(run_to_halt.id, run_to_halt.reason, run_to_halt.actor);
  role constant text := (select m.halted_by from holdfast.machines m where m.machine = run.machine);
begin
  if role is not null and not (
       coalesce(pg_has_role(session_user, to_regrole(quote_ident(role)), 'member'), false)  -- guard: role
       or pg_has_role(session_user, 'hf_owner', 'member')) then
    perform holdfast.refuse('42501', format('login %s may not pause, resume or stop a run of %s', session_user,
                                            run.machine),
                            format('grant the login the role %s, or ask somebody who has it', role), run.id::text);
  end if;
  return run;
end
$$;
