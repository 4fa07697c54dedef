-- Lists the partitions of the journal and the notes that are older than their rule keeps them, the oldest first.
create or replace function holdfast.old_months(clock timestamptz)
returns text[]
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select array(
    select c.relname::text
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
     cross join holdfast.history_rule('journal') r
     where i.inhparent in ('holdfast.journal'::regclass, 'holdfast.notes'::regclass)
       -- Its last moment is the end of the month, by UTC.
       and (to_timestamp(right(c.relname, 6), 'YYYYMM')::timestamp + interval '1 month') at time zone 'UTC'
           <= old_months.clock - r.keep
     order by right(c.relname, 6), c.relname)
$$;
grant execute on function holdfast.old_months to hf_producer, hf_worker, hf_reader, hf_operator;
