-- Refuses a channel that no worker has registered for the tenant: nobody would apply its targets.
create or replace function rules.check_channel(channel text, tenant text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_name('channel', coalesce(check_channel.channel, ''), 100);
  if not exists (select from rules.known_channels c
                  where c.channel = check_channel.channel and c.tenant in (check_channel.tenant, '*')) then
    perform holdfast.refuse(
      'RN004', format('there is no channel %s of tenant %s', check_channel.channel, check_channel.tenant),
      'register it with hf.rules.channel() and start a worker; rules.channels lists them', check_channel.channel);
  end if;
end
$$;
