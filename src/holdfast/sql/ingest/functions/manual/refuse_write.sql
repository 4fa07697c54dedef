-- The trigger of the views, which are read-only: names what to do instead.
create or replace function ingest.refuse_write()
returns trigger
language plpgsql security definer  -- only the owner may call holdfast.refuse
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.refuse('RN005', format('ingest.%s cannot be changed by %s', tg_table_name, lower(tg_op)),
    case tg_table_name
      when 'run_metadata' then 'workers are counted in the transaction that settles a partition, once each; '
                               'start a run with ingest.start'
      when 'worker_runs' then 'a worker writes it by claiming and settling its partition'
      when 'partition_progress' then 'ingest.start makes the partitions of a run'
      when 'pricing_rules' then 'use ingest.define_price and ingest.forget_price'
      when 'watermarks' then 'use ingest.set_watermark'
      when 'feeds' then 'use ingest.define_feed'
      else 'the moves of runs write it' end);
  return null;
end
$$;
