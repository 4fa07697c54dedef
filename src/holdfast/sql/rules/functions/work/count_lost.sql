-- Counts those of some targets of which nobody knows whether the channel was changed.
create or replace function rules.count_lost(ids bigint[])
returns int
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (select count(*)
            from unnest(count_lost.ids) u (id)
           cross join lateral (select h.error from holdfast.steps h where h.id = u.id offset 0) s
           where rules.is_unknown(s.error));
end
$$;
