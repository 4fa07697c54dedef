-- Settles outcomes of any kind (settle_batch has a shorter way for done steps): chooses each outcome's event by the
-- step's policy and moves the steps. A released step whose machine has no such move is cancelled. An outcome whose step
-- has no move is noted on the step and omitted; its lease then runs out.
create or replace function holdfast.settle_others(outcomes jsonb, allowed text[], clock timestamptz)
returns setof holdfast.settled_step
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  moves holdfast.step_move[];
  settled holdfast.settled_step[];
begin
  perform holdfast.check_outcomes(settle_others.outcomes);
  select array_agg((o.step_id, o.lease_id, e.event,
           settle_others.clock + greatest('0', case
             when e.event = 'snoozed' then least(o.retry_after, '100 years')
             when e.event = 'retried' and o.retry_after is null then
               holdfast.backoff(coalesce(n.policy, p.policy), coalesce(o.ordinal, s.failures + 1))  -- guard: ordinal
             when e.event = 'retried' then least(
               o.retry_after, '100 years',
               coalesce(n.longest_retry_after, p.longest_retry_after)  -- guard: retry_after
             )
           end),
           o.result, coalesce(odd.error, o.error), o.cursor)::holdfast.step_move)
    into moves
    from jsonb_array_elements(settle_others.outcomes) j,
         lateral jsonb_to_record(j) o (
           step_id bigint, lease_id bigint, outcome text, result jsonb, error jsonb, retry_after interval,
           cursor jsonb, cursor_was jsonb, policy text, ordinal int, is_charged boolean)
    cross join lateral (  -- offset 0: one by one and by primary key, whatever the statistics say
      select h.* from holdfast.steps h
       where h.id = o.step_id
         and h.lease_id = o.lease_id  -- guard: lease
      offset 0) s
    cross join lateral holdfast.step_policy(s.policy, s.kind, s.machine, s.tenant) p
    left join lateral (  -- the policy that the outcome names, in the tenant's own version if there is one
      select l.policy, l.longest_retry_after from holdfast.policies l
       where o.policy is not null and l.policy in (o.policy, holdfast.policy_name(o.policy, s.tenant))
       order by l.policy = o.policy limit 1) n on true,
    lateral (select case o.outcome
               when 'done' then holdfast.too_large('result', o.result)
               when 'continue' then holdfast.too_large('cursor', o.cursor)
               else holdfast.too_large('error', o.error) end as error) odd,
    lateral (select case
               when o.outcome = 'fail' or (o.outcome in ('done', 'continue') and odd.error is not null) then 'failed'
               when o.outcome = 'retry' and (
                 o.is_charged is not false and
                 s.failures + 1 >= p.tries  -- guard: budget
                 or not p.retryable  -- guard: retryable
               ) then 'failed'
               else case o.outcome when 'done' then 'succeeded' when 'retry' then 'retried' when 'snooze' then 'snoozed'
                                   when 'continue' then 'continued' when 'release' then holdfast.release_event(s)
                                   end end as event) e
   where holdfast.matches_any(settle_others.allowed, s.tenant)  -- guard: tenant
     -- The compare in compare-and-swap: with `cursor_was` (null: no cursor yet) the cursor moves only from there.
     and (o.outcome <> 'continue' or not j ? 'cursor_was'
          or s.cursor is not distinct from o.cursor_was  -- guard: cursor
         );
  if moves is null then
    return;
  end if;
  if jsonb_path_exists(settle_others.outcomes, '$[*] ? (@.raised_with != @.step_id)') then
    perform set_config('holdfast.repeats', array(
      select o.step_id from jsonb_to_recordset(settle_others.outcomes) o (step_id bigint, raised_with bigint)
       where o.raised_with <> o.step_id)::text, true);
  end if;
  settled := array(select m from holdfast.move_steps(
    array(select m from unnest(moves) m where m.event <> 'cancelled'), settle_others.clock) m);
  if exists (select from unnest(moves) m where m.event = 'cancelled') then
    settled := settled || holdfast.cancel_unreleased(
      array(select m from unnest(moves) m where m.event = 'cancelled'), settle_others.clock);
  end if;
  if jsonb_path_exists(settle_others.outcomes, '$[*] ? (@.pause != null || (@.retry_after != null && '
                                               '@.error.type == "RateLimited"))') then
    perform holdfast.pause_for_outcomes(
      settle_others.outcomes, array(select m.step_id from unnest(settled) m), settle_others.clock);
  end if;
  if current_setting('holdfast.repeats', true) <> '' then
    perform set_config('holdfast.repeats', '', true);
  end if;
  if jsonb_path_exists(settle_others.outcomes, '$[*] ? (@.alone == true)') then
    perform holdfast.keep_alone(array(
      select m.step_id from unnest(settled) m
        join jsonb_to_recordset(settle_others.outcomes) o (step_id bigint, alone boolean) on o.step_id = m.step_id
       where o.alone));
  end if;
  if jsonb_path_exists(settle_others.outcomes, '$[*] ? (@.is_charged == false || @.call_key != null)') then
    perform holdfast.adjust_settled(settle_others.outcomes, settled);
  end if;
  if exists (select from holdfast.limit_states) then
    perform holdfast.refund_steps(
      array(select m.step_id from unnest(settled) m
              join jsonb_to_recordset(settle_others.outcomes) o (step_id bigint, outcome text, is_tried boolean)
                on o.step_id = m.step_id
             where o.outcome = 'release' and o.is_tried is not true), settle_others.clock);  -- guard: refund
  end if;
  if cardinality(settled) < cardinality(moves) then
    insert into holdfast.notes (at, tenant, step_id, run_id, attempt, lease_id, level, message, payload)
    select settle_others.clock, s.tenant, s.id, s.run_id, s.attempt, s.lease_id, 'error',
           format('machine %s has no move %s from state %s: the outcome was not accepted', s.machine, m.event, s.state),
           jsonb_build_object('machine', s.machine, 'state', s.state, 'event', m.event)
      from unnest(moves) m join holdfast.steps s on s.id = m.step_id and s.lease_id = m.lease_id;
  end if;
  return query select x.* from unnest(settled) x;
end
$$;
