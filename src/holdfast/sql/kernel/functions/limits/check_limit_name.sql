-- Refuses what cannot name a limit: a family is a word, a colon and a star. With `is_one` a family is refused too.
create or replace function holdfast.check_limit_name(name text, is_one boolean default false)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_name('limit', coalesce(check_limit_name.name, ''));
  if strpos(check_limit_name.name, '*') > 0
     and (check_limit_name.is_one or check_limit_name.name is distinct from holdfast.limit_family(check_limit_name.name)
          or check_limit_name.name like ':%') then
    perform holdfast.refuse(
      'RN005', format('limit must be one name, such as shop:acme, got %s', check_limit_name.name),
      case when check_limit_name.is_one then 'name the value, not the family'
           else 'a family is a word, a colon and a star: shop:*' end, 'limit');
  end if;
end
$$;
