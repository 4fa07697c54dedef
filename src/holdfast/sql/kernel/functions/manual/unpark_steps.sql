-- Unparks those of the steps that park_steps or their start parked: each has its due time again. Steps that the kernel
-- parked itself are unparked when the kernel's reason is gone. A note on each step has the reason and `actor`, the
-- person that the login acts for. Returns the ids of the unparked steps.
create or replace function holdfast.unpark_steps(ids bigint[], reason text default null, actor text default null)
returns setof bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  unparked bigint[];
  queues text[];
begin
  perform holdfast.set_actor('user', coalesce(unpark_steps.actor, session_user), unpark_steps.reason);
  with changed as (
    update holdfast.steps s
       set due_at = s.parked_due_at, parked_due_at = null, parked_for = null
     where s.id = any (array(
             select l.id from holdfast.steps l
              where l.id = any (unpark_steps.ids) and holdfast.matches_any(allowed, l.tenant)
                and l.parked_due_at is not null and not holdfast.is_kernels_parking(l.parked_for)
              order by l.id
                for update))
    returning s.id, s.queue)
  select array_agg(c.id order by c.id), array_agg(distinct c.queue) into unparked, queues from changed c;
  perform holdfast.set_actor();
  perform holdfast.note_change(unparked, 'unparked', '{}', unpark_steps.reason, unpark_steps.actor);
  perform holdfast.wake(queues);
  return query select u.id from unnest(unparked) u (id);
end
$$;
grant execute on function holdfast.unpark_steps to hf_operator;
