-- Removes a rule that set_retention made, so that less specific ones or the defaults apply again; returns false if
-- there was none. A default stays.
create or replace function holdfast.forget_retention(
  outcome text default null, machine text default null, queue text default null, tenant text default null,
  what text default 'runs', reason text default null, actor text default null)
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  owners constant text[] := holdfast.retention_tenants(forget_retention.what, forget_retention.tenant);
begin
  perform holdfast.check_retention(forget_retention.what, forget_retention.machine, forget_retention.queue,
                                   forget_retention.outcome);
  perform holdfast.check_reason(forget_retention.reason);
  perform holdfast.check_name('actor', forget_retention.actor);
  return (select bool_or(holdfast.change_retention(
                   forget_retention.what, t.owner, forget_retention.machine, forget_retention.queue,
                   forget_retention.outcome, null, true, forget_retention.reason, forget_retention.actor))
            from unnest(owners) t (owner));
end
$$;
grant execute on function holdfast.forget_retention to hf_operator;
