-- Reopens a run for its targets with an unknown outcome, to be read and not written, and returns how many there are.
-- What was written becomes APPLIED, so that a rollback finds it; what was not stays FAILED.
create or replace function rules.settle_unknown(facts rules.run_facts, reason text, author text)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  ids constant bigint[] := array(select u.id from rules.unknown_targets(facts.run_id) u (id));
begin
  if ids <> '{}' then
    update rules.run_facts f set is_settling = true where f.run_id = facts.run_id;
    perform holdfast.set_actor('api', settle_unknown.author, settle_unknown.reason);
    perform holdfast.readmit(facts.run_id, ids);
    perform holdfast.set_actor();
  end if;
  return cardinality(ids);
end
$$;
