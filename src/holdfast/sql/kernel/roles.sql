-- The roles that own and use the schema. Roles belong to the server, so two databases on one server share them. The
-- login that migrates runs this file; hf_owner makes everything after it.
do $$
declare
  role text;
begin
  foreach role in array array['hf_owner', 'hf_migrator', 'hf_producer', 'hf_worker', 'hf_reader', 'hf_operator'] loop
    begin
      if not exists (select from pg_catalog.pg_roles r where r.rolname = role) then
        execute format('create role %I nologin', role);
      end if;
    exception when duplicate_object or unique_violation then
      null;  -- another migration made it in between
    end;
  end loop;
  if not pg_catalog.pg_has_role(session_user, 'hf_owner', 'usage') then
    execute format('grant hf_owner to %I', session_user);
  end if;
  if not pg_catalog.pg_has_role('hf_migrator', 'hf_owner', 'member') then
    grant hf_owner to hf_migrator;
  end if;
  if not pg_catalog.has_database_privilege('hf_owner', current_database(), 'create') then
    execute format('grant create on database %I to hf_owner', current_database());
  end if;
  if not pg_catalog.has_database_privilege('hf_owner', current_database(), 'create') then
    -- A login that may not grant it gets only a warning.
    raise insufficient_privilege using message = format('%s does not own the database %s',
                                                        session_user, current_database());
  end if;
end
$$;
