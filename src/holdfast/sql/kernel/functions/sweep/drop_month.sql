-- Drops the oldest month of the journal or the notes that its rule no longer keeps, and returns the partition's name;
-- null if there is none, or if somebody uses it. It takes a lock that all claims queue up behind, so it waits for 100
-- ms at most, and refuses a transaction that has used these tables. Call it again later. One of the three places where
-- a statement is built from strings.
create or replace function holdfast.drop_month()
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '100ms'  -- guard: patience
as $$
declare
  clock constant timestamptz := holdfast.clock();
  month text;
  is_blocked boolean := false;
  is_used constant boolean := exists (
    select from pg_locks l
     where l.pid = pg_backend_pid() and l.granted
       and l.relation in ('holdfast.journal'::regclass, 'holdfast.notes'::regclass));
begin
  if is_used then  -- guard: alone
    perform holdfast.refuse('RN010', 'drop_month was called in a transaction that has used the journal',
                            'call it in a transaction of its own');
  end if;
  month := (select (holdfast.old_months(clock))[1] from holdfast.retention_sweep w where w.begins_at <= clock);
  if month is not null then
    begin
      execute format('drop table holdfast.%I', month);
    exception when lock_not_available then
      is_blocked := true;
    end;
  end if;
  -- Without waiting: the journal may be locked now, and whoever sweeps has the row.
  update holdfast.retention_sweep w
     set blocked_at = case when is_blocked then case when w.blocked_month = month then w.blocked_at else clock end end,
         blocked_month = case when is_blocked then month end
   where w.is_only in (select l.is_only from holdfast.retention_sweep l
                     where is_blocked or l.blocked_at is not null for update skip locked);
  return case when not is_blocked then month end;
end
$$;
grant execute on function holdfast.drop_month to hf_worker, hf_operator;
