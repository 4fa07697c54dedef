-- Sets how long finished tasks and runs are kept: `keep` is counted from their end, 0 keeps nothing and null keeps them
-- forever. With `what` runs, the rule is for tasks and runs of that outcome, machine, queue (tasks only) and tenant;
-- null stands for any, and the most specific rule applies: the tenant counts most, then the machine, the queue and the
-- outcome.
-- `journal` is for the journal and the notes, by whole months, `ticks` for the ticks of schedules. `tenant` '*' is for
-- all; null: all for a login for all tenants, else each of the login's. `actor` names the person that the login acts
-- for.
create or replace function holdfast.set_retention(
  keep interval, outcome text default null, machine text default null, queue text default null,
  tenant text default null, what text default 'runs', reason text default null, actor text default null)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_retention(set_retention.what, set_retention.machine, set_retention.queue,
                                   set_retention.outcome, set_retention.keep);
  perform holdfast.check_reason(set_retention.reason);
  perform holdfast.check_name('actor', set_retention.actor);
  perform holdfast.change_retention(
    set_retention.what, t.owner, set_retention.machine, set_retention.queue, set_retention.outcome, set_retention.keep,
    false, set_retention.reason, set_retention.actor)
     from unnest(holdfast.retention_tenants(set_retention.what, set_retention.tenant)) t (owner);
end
$$;
grant execute on function holdfast.set_retention to hf_operator;
