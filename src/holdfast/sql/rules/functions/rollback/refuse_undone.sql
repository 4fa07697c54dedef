-- Refuses to open a run while a rollback of it is open: what the one writes, the other would undo.
create or replace function rules.refuse_undone(facts rules.run_facts)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  other constant uuid := (select o.run_id from rules.run_facts o where o.undoes = facts.run_id and o.is_open limit 1);
begin
  if other is null then  -- guard: undone
    return;
  end if;
  perform holdfast.refuse('RN010', format('run %s is being rolled back by run %s', facts.run_id, other),
                          format('wait until it ends, or stop it with `holdfast rules stop %s`', other), other::text);
end
$$;
