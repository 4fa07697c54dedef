-- Does one chunk of retention now, for an operator: as sweep does, but without waiting for the next sweep or for the
-- day after the migration. `afresh` begins again at the first row. For a login that may act for all tenants.
create or replace function holdfast.sweep_now(batch int default 1000, afresh boolean default false)
returns table (steps bigint, runs bigint, keys bigint, ticks bigint, months int, is_through boolean, wait interval)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_all_tenants('sweep_now');
  if sweep_now.afresh then
    update holdfast.retention_sweep w
       set next_at = holdfast.clock()
     where w.is_only in (select l.is_only from holdfast.retention_sweep l for update skip locked);
  end if;
  return query select c.* from holdfast.sweep_chunk(sweep_now.batch, true) c;
end
$$;
grant execute on function holdfast.sweep_now to hf_operator;
