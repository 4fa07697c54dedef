-- Refuses staged steps with ids, all from `first_id` to `last_id`, that the login did not reserve.
create or replace function holdfast.check_reserved(first_id bigint, last_id bigint)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  stray bigint;
begin
  if exists (select from holdfast.reserved_ids r
              where r.login = session_user and r.first_id <= check_reserved.first_id
                and r.last_id >= check_reserved.last_id) then
    return;
  end if;
  select min(g.id) into stray
    from pg_temp.staged_steps g
   where g.id is not null and coalesce(  -- each by index: the last reservation that begins no later
           (select r.last_id from holdfast.reserved_ids r
             where r.login = session_user and r.first_id <= g.id order by r.first_id desc limit 1) < g.id, true);
  if stray is not null then
    perform holdfast.refuse('RN005', format('id %s of a staged step was not reserved by %s', stray, session_user),
                            'take ids from holdfast.reserve_step_ids()');
  end if;
end
$$;
