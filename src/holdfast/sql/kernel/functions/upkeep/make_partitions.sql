-- Makes the partitions of journal and notes for this month and the `ahead` months after it, and returns how many were
-- new. They are made apart and then attached, which does not block readers or writers. One of the two places where a
-- statement is built from strings: a partition has a name and bounds of its own.
create or replace function holdfast.make_partitions(ahead int default 13)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  first constant timestamp := date_trunc('month', holdfast.clock() at time zone 'UTC');
  month timestamp;
  parent text;
  child text;
  made int := 0;
begin
  -- One session at a time: the second finds the partitions made.
  perform pg_advisory_xact_lock(hashtextextended('holdfast.make_partitions', 0));
  foreach parent in array array['journal', 'notes'] loop
    for month in select generate_series(first, first + make_interval(months => make_partitions.ahead), '1 month') loop
      child := format('%s_%s', parent, to_char(month, 'YYYYMM'));
      -- Not to_regclass: its cached answer may be older than the lock.
      continue when exists (select from pg_tables t where t.schemaname = 'holdfast' and t.tablename = child);
      execute format('create table holdfast.%I (like holdfast.%I including defaults including constraints)',
                     child, parent);
      execute format('alter table holdfast.%I attach partition holdfast.%I for values from (%L) to (%L)',
                     parent, child, month at time zone 'UTC', (month + interval '1 month') at time zone 'UTC');
      execute format('create trigger stays_whole before truncate on holdfast.%I '
                     'execute function holdfast.refuse_change()', child);
      made := made + 1;
    end loop;
  end loop;
  return made;
end
$$;
