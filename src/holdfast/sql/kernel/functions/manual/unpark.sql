-- Unparks steps as unpark_steps says. Only where `is_by_face` is true does it unpark steps that their face keeps to
-- itself; logins cannot call this function.
create or replace function holdfast.unpark(ids bigint[], reason text, actor text, is_by_face boolean)
returns setof bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  unparked bigint[];
  queues text[];
begin
  perform holdfast.set_actor('user', coalesce(unpark.actor, session_user), unpark.reason);
  with changed as (
    update holdfast.steps s
       set due_at = s.parked_due_at, parked_due_at = null, parked_for = null
     where s.id = any (array(
             select l.id from holdfast.steps l
              where l.id = any (unpark.ids) and holdfast.matches_any(allowed, l.tenant)
                and l.parked_due_at is not null and not holdfast.is_kernels_parking(l.parked_for)
                and (unpark.is_by_face or not holdfast.is_own_parking(l.machine, l.parked_for))
              order by l.id
                for update))
    returning s.id, s.queue)
  select array_agg(c.id order by c.id), array_agg(distinct c.queue) into unparked, queues from changed c;
  perform holdfast.set_actor();
  perform holdfast.note_change(unparked, 'unparked', '{}', unpark.reason, unpark.actor);
  perform holdfast.wake(queues);
  return query select u.id from unnest(unparked) u (id);
end
$$;
