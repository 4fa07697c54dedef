-- Parks those of the steps that are free and due, now or later: no worker claims them until unpark_steps, and each
-- keeps its due time. `parked_for` says what they wait for, such as an approval. Steps that are held, over, waiting for
-- others or parked for something else do not change, nor do those that only their face parks for that. A note on each
-- step has the reason and `actor`, the person that the login acts for. Returns the ids of the parked steps.
create or replace function holdfast.park_steps(
  ids bigint[], parked_for text, reason text default null, actor text default null)
returns setof bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  parked bigint[];
begin
  perform holdfast.check_parking(park_steps.parked_for);
  perform holdfast.set_actor('user', coalesce(park_steps.actor, session_user), park_steps.reason);
  with changed as (
    update holdfast.steps s
       set due_at = null, parked_due_at = coalesce(s.due_at, s.parked_due_at), parked_for = park_steps.parked_for,
           limited_by = null
     where s.id = any (array(
             select l.id from holdfast.steps l
              where l.id = any (park_steps.ids) and holdfast.matches_any(allowed, l.tenant)
                -- Also if no worker serves it or a limit refused it: otherwise it would come back by itself.
                and (l.due_at + interval '0' is not null or l.parked_for in ('handler', 'limit'))
                and not holdfast.is_own_parking(l.machine, park_steps.parked_for)  -- guard: face
              order by l.id
                for update))
    returning s.id)
  select array_agg(c.id order by c.id) into parked from changed c;
  perform holdfast.set_actor();
  perform holdfast.note_change(
    parked, format('parked for %s', park_steps.parked_for), jsonb_build_object('parked_for', park_steps.parked_for),
    park_steps.reason, park_steps.actor);
  return query select u.id from unnest(parked) u (id);
end
$$;
grant execute on function holdfast.park_steps to hf_operator;
