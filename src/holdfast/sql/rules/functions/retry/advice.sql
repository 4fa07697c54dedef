-- Returns what to do about dead targets, by how many there are of each class, as sentences.
create or replace function rules.advice(by_class jsonb, older bigint)
returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  with counts as (
    select c.key as class, c.value::bigint as targets, c.value::numeric / sum(c.value::bigint) over () as share
      from jsonb_each_text(advice.by_class) c)
  select coalesce(jsonb_agg(a.sentence order by a.no), '[]')
    from (
      select 1 as no, format('%s targets hit a rate limit: lower the limit of the channel before you retry them',
                             c.targets) as sentence
        from counts c where c.class = 'RATE_LIMIT' and c.share > 0.2
      union all
      select 2, format('%s targets failed on the way: check the network and the channel''s health, then retry them',
                       sum(c.targets))
        from counts c where c.class in ('NETWORK', 'TIMEOUT', 'SERVER_ERROR') having sum(c.share) > 0.1
      union all
      select 3, format('%s targets were not authorized: renew the channel''s credentials, then retry them', c.targets)
        from counts c where c.class = 'AUTHORIZATION'
      union all
      select 4, format('%s targets were refused as invalid: correct the rule or the items, then preview again',
                       c.targets)
        from counts c where c.class = 'VALIDATION'
      union all
      select 5, format('%s items no longer exist: resolve their targets', c.targets)
        from counts c where c.class = 'NOT_FOUND'
      union all
      select 6, format('%s targets are older than 24 hours: retry or resolve them', advice.older)
       where advice.older > 0) a;
$$;
