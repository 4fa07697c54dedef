-- Whether a step of a pass may read its next page under the claim that it has. Not where a limit counts its calls: each
-- page is then claimed and charged by itself, after the targets, which have a higher priority. Not while a limit is
-- paused or its breaker open, the queue or the pass is paused or stopped, or something with a higher priority is due.
create or replace function rules.may_read_on(step_id bigint)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
set plan_cache_mode = force_generic_plan  -- one plan is left: make it once, not per call
as $$
declare
  clock constant timestamptz := holdfast.clock();
  step constant holdfast.steps := (select s from holdfast.steps s where s.id = may_read_on.step_id);
begin
  return not exists (
      select from holdfast.limit_states t
        left join lateral holdfast.limit_rule(t.name, t.tenant) r on true
       where t.id = any (step.holds)
         and (r.rate is not null  -- guard: rate
              or r.concurrency is not null  -- guard: slots
              or greatest(t.paused_until, r.paused_until) > clock  -- guard: pause
              or t.open_until is not null))  -- guard: breaker
    and exists (
      select from holdfast.runs r
       where r.id = step.run_id
         and r.halt is null and r.finished_at is null)  -- guard: halt
    and exists (
      select from holdfast.queues q
       where q.queue = step.queue
         and q.paused_at is null  -- guard: queue
         and not exists (
           select from generate_series(step.priority + 1, q.top_priority) p (priority)
            cross join lateral (
              select from holdfast.steps s
               where s.queue = step.queue and s.priority = p.priority
                 and s.due_at <= clock limit 1) s));  -- guard: order
end
$$;
