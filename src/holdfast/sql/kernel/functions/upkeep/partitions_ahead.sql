-- Returns how far ahead of the clock the journal has partitions: nothing, if it has none for the clock's own month,
-- because the clock was set back.
create or replace function holdfast.partitions_ahead()
returns interval
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select case when bool_or(right(c.relname, 6) = to_char(holdfast.clock() at time zone 'UTC', 'YYYYMM'))
              then max(to_timestamp(right(c.relname, 6), 'YYYYMM') + interval '1 month') - holdfast.clock()
              else interval '0' end
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
   where i.inhparent = 'holdfast.journal'::regclass;
$$;
grant execute on function holdfast.partitions_ahead to hf_producer, hf_worker, hf_reader, hf_operator;
