-- Refuses the first argument of a retry that cannot be right.
create or replace function rules.check_retry(
  only_ids bigint[], without_ids bigint[], classes text[], reason text, actor text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  unknown text;
begin
  perform holdfast.check_reason(check_retry.reason);
  perform holdfast.check_name('actor', check_retry.actor);
  if check_retry.only_ids is not null and check_retry.without_ids is not null then
    perform holdfast.refuse('RN005', 'only and without are both set', 'leave one out', 'only');
  end if;
  select c.class into unknown from unnest(check_retry.classes) c (class)
   where c.class is null or c.class not in ('RATE_LIMIT', 'TIMEOUT', 'NETWORK', 'SERVER_ERROR', 'NOT_FOUND',
                                            'AUTHORIZATION', 'VALIDATION', 'UNKNOWN') limit 1;
  if found then
    perform holdfast.refuse('RN005', format('there is no class of errors %s', coalesce(unknown, 'null')),
                            'use RATE_LIMIT, TIMEOUT, NETWORK, SERVER_ERROR, NOT_FOUND, AUTHORIZATION, VALIDATION or '
                            'UNKNOWN', 'classes');
  end if;
end
$$;
