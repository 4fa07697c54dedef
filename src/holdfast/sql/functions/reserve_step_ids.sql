-- Gives out step ids beforehand, ascending: for edges between steps that are staged.
create or replace function holdfast.reserve_step_ids(amount int)
returns setof bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query select nextval('holdfast.step_ids') from generate_series(1, reserve_step_ids.amount);
end
$$;
