-- Puts a rule in the place of another one (keep null: forever), or removes it, and records who did. Returns whether
-- that changed anything. The next sweep follows it.
create or replace function holdfast.change_retention(
  what text, owner text, machine text, queue text, outcome text, keep interval, is_removed boolean, reason text,
  actor text)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  present holdfast.retention_rules;
begin
  perform pg_advisory_xact_lock(hashtextextended('holdfast.retention_rules', 0));  -- one change after the other
  select r.* into present from holdfast.retention_rules r
   where r.what = change_retention.what and r.tenant = change_retention.owner and not r.is_default
     and r.machine is not distinct from change_retention.machine
     and r.queue is not distinct from change_retention.queue
     and r.outcome is not distinct from change_retention.outcome;
  if (change_retention.is_removed and present.what is null)
     or (not change_retention.is_removed and present.what is not null
         and present.keep is not distinct from change_retention.keep) then
    return false;
  end if;
  delete from holdfast.retention_rules r
   where r.what = change_retention.what and r.tenant = change_retention.owner and not r.is_default
     and r.machine is not distinct from change_retention.machine
     and r.queue is not distinct from change_retention.queue
     and r.outcome is not distinct from change_retention.outcome;
  if not change_retention.is_removed then
    insert into holdfast.retention_rules (what, tenant, machine, queue, outcome, keep, set_at)
    values (change_retention.what, change_retention.owner, change_retention.machine, change_retention.queue,
            change_retention.outcome, change_retention.keep, clock);
  end if;
  insert into holdfast.retention_changes (at, what, tenant, machine, queue, outcome, event, keep, kept, actor, login,
                                          reason)
  values (clock, change_retention.what, change_retention.owner, change_retention.machine, change_retention.queue,
          change_retention.outcome, case when change_retention.is_removed then 'removed' else 'set' end,
          case when not change_retention.is_removed then change_retention.keep end, present.keep,
          coalesce(change_retention.actor, session_user),
          case when change_retention.actor <> session_user then session_user end, change_retention.reason);
  update holdfast.retention_sweep w
     set next_at = clock
   where w.next_at > clock
     and w.is_only in (select l.is_only from holdfast.retention_sweep l for update skip locked);
  return true;
end
$$;
