-- Removes up to `batch` price changes and as many stored events that are older than they are kept, cancels passes that
-- nobody serves, and returns how many. Adds up the figures.
create or replace function rules.age_rows(batch int)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  changes int;
  events int;
begin
  delete from rules.ledger l
   where l.id = any (array(select o.id
                             from (select f.id, f.at from rules.ledger f order by f.id limit age_rows.batch) o
                            where o.at < clock - rules.kept_for('ledger')));  -- ids follow the time
  get diagnostics changes = row_count;
  delete from rules.stored_events e
   where e.id = any (array(select o.id from rules.stored_events o where o.at < clock - rules.kept_for('stored_events')
                            order by o.at limit age_rows.batch));
  get diagnostics events = row_count;
  perform rules.fold_figures();
  return changes + events + rules.call_off_passes(least(age_rows.batch, 10));
end
$$;
