-- Whether one of these steps (numbers) and runs (UUIDs) is not over, or a run that belongs to one of the runs, such as
-- its retry. Ids that are not there are over.
create or replace function holdfast.is_any_open(ids text[])
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  steps constant bigint[] := array(
    select u.id::bigint from unnest(is_any_open.ids) u (id) where u.id ~ '^[0-9]{1,18}$');
  runs constant uuid[] := array(
    select u.id::uuid from unnest(is_any_open.ids) u (id)
     where u.id ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$');
begin
  if exists (select from holdfast.steps s where s.id = any (steps) and s.finished_at is null) then
    return true;
  end if;
  return exists (
    with recursive family as (
      select r.id, r.finished_at from holdfast.runs r where r.id = any (runs)
      union
      select r.id, r.finished_at from family f join holdfast.runs r on r.of_run = f.id)
    select from family f where f.finished_at is null);
end
$$;
