-- Cancels older runs of the same environment and ref: those that are queued, and with cancel_all those that are claimed
-- or running as well.
create or replace function ops.supersede(facts ops.run_facts, on_push text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  states constant text[] := case supersede.on_push
    when 'cancel_all' then '{queued,claimed,running}' else '{queued}' end;
  moves constant holdfast.step_move[] := array(
    select (s.id, s.lease_id, 'cancelled', null, null, null, null)::holdfast.step_move
      from holdfast.steps s
     where s.id = any (array(
             select f.step_id from ops.run_facts f
              where f.status = any (states) and f.env_id = facts.env_id and f.git_ref = facts.git_ref
                and f.step_id < facts.step_id))
       and s.state = any (states)  -- it may have been claimed meanwhile
     order by s.id
       for update);
begin
  if moves <> '{}' then
    perform holdfast.set_actor('api', facts.queued_by, format('Superseded by %s', facts.run_id));
    perform from holdfast.move_steps(moves);
    perform holdfast.set_actor();
  end if;
end
$$;
