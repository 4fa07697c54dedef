-- Sets the watermark of a feed by hand, also back: the next run then asks again for what changed since. Refused while a
-- run is active, which would end with another bound.
create or replace function ingest.set_watermark(feed text, at timestamptz, reason text)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  known constant ingest.known_feeds := ingest.feed_to_use(set_watermark.feed);
  clock constant timestamptz := holdfast.clock();
begin
  perform holdfast.check_reason(set_watermark.reason);
  if set_watermark.at is null or set_watermark.at > clock then
    perform holdfast.refuse('RN005', format('at must be a time in the past, got %s', set_watermark.at),
                            'records that change until then would never be asked for', 'at');
  end if;
  perform ingest.refuse_if_active(known.feed);
  insert into ingest.feed_watermarks as w (feed, tenant, last_updated_at, changed_at)
  values (known.feed, known.tenant, set_watermark.at, clock)
  on conflict on constraint feed_watermarks_pkey do update
    set last_updated_at = excluded.last_updated_at, last_run_id = null, last_run_completed_at = null,
        changed_at = excluded.changed_at;
end
$$;
grant execute on function ingest.set_watermark to hf_operator;
