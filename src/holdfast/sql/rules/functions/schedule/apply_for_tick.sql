-- Applies a run for the tick of its schedule, with the choice of targets that is in the schedule's input, and returns
-- its id. A run that was applied meanwhile stays as it is. Refused are a plan that expired, and a change whose end has
-- come too: it would stay for ever. The caller has called set_actor.
create or replace function rules.apply_for_tick(input jsonb, tenant text)
returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  kind constant text := coalesce(current_setting('holdfast.actor_kind', true), '');
  person constant text := coalesce(nullif(current_setting('holdfast.actor', true), ''), session_user);
  reason constant text := coalesce(current_setting('holdfast.reason', true), '');
  facts rules.run_facts := rules.facts_of_tick(apply_for_tick.input, apply_for_tick.tenant);
  only_ids constant bigint[] := rules.ids_of(apply_for_tick.input -> 'only');
  without_ids constant bigint[] := rules.ids_of(apply_for_tick.input -> 'without');
  leaves_out constant boolean := coalesce((apply_for_tick.input ->> 'leave_out_shared')::boolean, false);
begin
  perform rules.lock_channel(facts);
  if (select r.state from holdfast.runs r where r.id = facts.run_id) <> 'PREVIEW' then
    return array[facts.run_id::text];
  end if;
  if facts.expires_at <= clock then  -- guard: expired
    perform holdfast.refuse('RN010', format('the plan of run %s expired at %s', facts.run_id, facts.expires_at),
                            format('plan again with `holdfast rules preview --again %s`', facts.run_id), 'plan');
  end if;
  if exists (select from holdfast.schedules s
              where s.tenant = facts.tenant and s.name = 'rules:revert:' || facts.run_id
                and (s.ended_at is not null or s.at <= clock)) then  -- guard: end
    perform holdfast.refuse('RN010', format('run %s should have been undone by now', facts.run_id),
                            'give rules:revert a later time, or remove it', facts.run_id::text);
  end if;
  update rules.run_facts f set selection = apply_for_tick.input - 'run_id' - 'reason' where f.run_id = facts.run_id;
  if only_ids is not null or without_ids is not null or leaves_out then
    facts := rules.choose_targets(facts, only_ids, without_ids, leaves_out);
  end if;
  perform holdfast.set_actor(case kind when 'scheduler' then 'scheduler' else 'api' end, person,
                             coalesce(apply_for_tick.input ->> 'reason', reason));
  perform holdfast.begin_admission(facts.run_id, (apply_for_tick.input ->> 'first')::int);
  perform holdfast.set_actor(kind, person, reason);
  return array[facts.run_id::text];
end
$$;
