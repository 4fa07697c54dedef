-- Defines the pricing rule of a feed with that priority: the lowest number that fits a record wins. Criteria name
-- columns of the target: a value, a list of values, or {"min": …, "max": …}; a column that is not named fits any.
create or replace function ingest.define_price(
  feed text, priority int, markup numeric, criteria jsonb default '{}', rating text default null)
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  known constant ingest.known_feeds := ingest.feed_to_use(define_price.feed);
  rule_id bigint;
begin
  if define_price.priority is null or coalesce(define_price.markup <= 0, true)
     or jsonb_typeof(define_price.criteria) is distinct from 'object' then
    perform holdfast.refuse(
      'RN005', format('a pricing rule needs a priority, a markup above 0 and criteria, got %s, %s and %s',
                      define_price.priority, define_price.markup, left(define_price.criteria::text, 100)),
      'select ingest.define_price(''diamonds'', 10, 1.2, ''{"shape": ["round"]}'')', 'markup');
  end if;
  insert into ingest.prices as p (feed, tenant, priority, criteria, markup, rating, created_at)
  values (known.feed, known.tenant, define_price.priority, define_price.criteria, define_price.markup,
          define_price.rating, holdfast.clock())
  on conflict (feed, priority) do update
    set criteria = excluded.criteria, markup = excluded.markup, rating = excluded.rating
  returning p.id into rule_id;
  return rule_id;
end
$$;
grant execute on function ingest.define_price to hf_operator;
