-- Reserves ascending step ids for the login, for edges between staged steps. They stay reserved for a day.
create or replace function holdfast.reserve_step_ids(amount int)
returns setof bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  ids bigint[];
begin
  if reserve_step_ids.amount is null or reserve_step_ids.amount not between 0 and 1000000 then
    perform holdfast.refuse('RN005', format('amount must be 0 to 1000000, got %s', reserve_step_ids.amount),
                            'reserve more with another call', 'amount');
  end if;
  ids := array(select nextval('holdfast.step_ids') from generate_series(1, reserve_step_ids.amount));
  insert into holdfast.reserved_ids (login, first_id, last_id, reserved_at)
  select session_user, min(u.id), max(u.id), holdfast.clock()
    -- one row per gapless range: other sessions take ids in between
    from (select i.id, i.id - i.no as before from unnest(ids) with ordinality i (id, no)) u
   group by u.before;
  return query select unnest(ids);
end
$$;
grant execute on function holdfast.reserve_step_ids to hf_producer, hf_worker, hf_operator;
