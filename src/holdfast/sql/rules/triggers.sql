-- The views are read-only: the error of a write names the function to call. What a preview or an apply wrote stays.
create or replace trigger takes_no_write instead of insert or update or delete on rules.rule_runs
  for each row execute function rules.refuse_write();
create or replace trigger takes_no_write instead of insert or update or delete on rules.rule_targets
  for each row execute function rules.refuse_write();
create or replace trigger takes_no_write instead of insert or update or delete on rules.refusals
  for each row execute function rules.refuse_write();
create or replace trigger takes_no_write instead of insert or update or delete on rules.price_changes
  for each row execute function rules.refuse_write();
create or replace trigger takes_no_write instead of insert or update or delete on rules.channels
  for each row execute function rules.refuse_write();
create or replace trigger takes_no_write instead of insert or update or delete on rules.events
  for each row execute function rules.refuse_write();
create or replace trigger takes_no_write instead of insert or update or delete on rules.reconciliations
  for each row execute function rules.refuse_write();
create or replace trigger takes_no_write instead of insert or update or delete on rules.mismatches
  for each row execute function rules.refuse_write();

create or replace trigger stays before update or delete on rules.ledger
  for each row execute function rules.refuse_change();
create or replace trigger stays_whole before truncate on rules.ledger
  for each statement execute function rules.refuse_change();
create or replace trigger stays before update or delete on rules.stored_events
  for each row execute function rules.refuse_change();
create or replace trigger stays_whole before truncate on rules.stored_events
  for each statement execute function rules.refuse_change();
create or replace trigger stays before update on rules.plans
  for each row execute function rules.refuse_change();
create or replace trigger stays_whole before truncate on rules.plans
  for each statement execute function rules.refuse_change();
create or replace trigger stays before update on rules.target_values
  for each row execute function rules.refuse_change();
create or replace trigger stays_whole before truncate on rules.target_values
  for each statement execute function rules.refuse_change();
create or replace trigger stays before update on rules.findings
  for each row execute function rules.refuse_change();
create or replace trigger stays_whole before truncate on rules.findings
  for each statement execute function rules.refuse_change();
create or replace trigger stays before update or delete on rules.rule_versions
  for each row execute function rules.refuse_change();
create or replace trigger stays_whole before truncate on rules.rule_versions
  for each statement execute function rules.refuse_change();
