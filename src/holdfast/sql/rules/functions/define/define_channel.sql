-- Registers a channel, or replaces what is known of it. A worker that serves it does so when it connects. A login for
-- all tenants registers it for all, one for some tenants for those. `about` is shown to people: no secrets.
create or replace function rules.define_channel(
  channel text, kind text, about jsonb default '{}', batch int default 1, request_timeout interval default '10 seconds',
  target_timeout interval default '60 seconds', settles_within interval default '0', corrects boolean default false)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_name('channel', coalesce(define_channel.channel, ''), 100);
  perform holdfast.check_name('kind', coalesce(define_channel.kind, ''), 100);
  perform holdfast.check_size('about', define_channel.about);
  if define_channel.batch is null or define_channel.batch not between 1 and 10000 then
    perform holdfast.refuse('RN005', format('batch must be 1 to 10000, got %s', define_channel.batch), 'use 250',
                            'batch');
  end if;
  if (define_channel.request_timeout > '0' and define_channel.target_timeout >= define_channel.request_timeout)
     is not true then
    perform holdfast.refuse(
      'RN005', format('request_timeout must be above 0 and at most target_timeout, got %s and %s',
                      define_channel.request_timeout, define_channel.target_timeout),
      'use 10 and 60 seconds', 'request_timeout');
  end if;
  if (define_channel.settles_within between '0' and interval '4 minutes') is not true then
    perform holdfast.refuse('RN005', format('settles_within must be 0 to 4 minutes, got %s',
                                            define_channel.settles_within),
                            'a pass checks a run within 5 minutes of its end', 'settles_within');
  end if;
  insert into rules.known_channels as c (
    tenant, channel, kind, about, batch, request_timeout, target_timeout, settles_within, corrects, defined_at,
    defined_by)
  select t.tenant, define_channel.channel, define_channel.kind, coalesce(define_channel.about, '{}'),
         define_channel.batch, define_channel.request_timeout, define_channel.target_timeout,
         define_channel.settles_within, coalesce(define_channel.corrects, false), holdfast.clock(), session_user
    from unnest(holdfast.tenants_to_define('a channel')) t (tenant)
  on conflict on constraint known_channels_pkey do update
    set kind = excluded.kind, about = excluded.about, batch = excluded.batch,
        request_timeout = excluded.request_timeout, target_timeout = excluded.target_timeout,
        settles_within = excluded.settles_within, corrects = excluded.corrects, defined_at = excluded.defined_at,
        defined_by = excluded.defined_by
    where (c.kind, c.about, c.batch, c.request_timeout, c.target_timeout, c.settles_within, c.corrects)
          is distinct from (excluded.kind, excluded.about, excluded.batch, excluded.request_timeout,
                            excluded.target_timeout, excluded.settles_within, excluded.corrects);
end
$$;
grant execute on function rules.define_channel to hf_worker, hf_operator;
