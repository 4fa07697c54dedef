-- A definition belongs to one tenant, or to all ('*'): a login that may act for some tenants only defines things for those.
-- Everything that exists so far belongs to all. The tables are small.
alter table holdfast.kinds add column tenant text not null default '*';
-- squawk-ignore ban-drop-constraint
alter table holdfast.kinds drop constraint kinds_pkey;
-- squawk-ignore constraint-missing-not-valid, adding-serial-primary-key-field
alter table holdfast.kinds add constraint kinds_pkey primary key (kind, tenant);
-- squawk-ignore require-concurrent-index-creation
create index kinds_of_tenants on holdfast.kinds (tenant) where tenant <> '*';  -- a claim asks whether there are any
alter table flow.definitions add column tenant text not null default '*';
-- squawk-ignore ban-drop-constraint
alter table flow.definitions drop constraint definitions_pkey;
-- squawk-ignore constraint-missing-not-valid, adding-serial-primary-key-field
alter table flow.definitions add constraint definitions_pkey primary key (namespace, name, version, tenant);
alter table holdfast.policies add column tenant text not null default '*';

-- Whether a policy retries at all, apart from how often.
alter table holdfast.policies add column retryable boolean not null default true;

-- It returns whole rows of the table, so it is made anew together with the columns: until the functions are installed,
-- workers of the previous release settle by it.
create or replace function holdfast.policy_of(own text, kind text, machine text)
returns setof holdfast.policies
language sql stable
begin atomic
  select p.*
    from holdfast.machines c
    left join holdfast.policies o on o.policy = policy_of.own
    left join holdfast.kinds k on k.kind = policy_of.kind and k.tenant = '*'
    join holdfast.policies p on p.policy = coalesce(o.policy, k.policy, c.policy)
   where c.machine = policy_of.machine;
end;

-- Which step ids a login reserved: a staged step takes no id that another login reserved. Upkeep forgets them after a day.
create table holdfast.reserved_ids (
  login text not null,
  first_id bigint not null,
  last_id bigint not null,
  reserved_at timestamptz not null,
  primary key (login, first_id)
);

-- Document 003 names whether a step's backoff is over; why a step is not ready is ours.
alter type flow.step_readiness
  add attribute backoff_period_expired boolean,
  add attribute waiting_reason text;

-- Its rows have two columns more from here on, so it is made anew in the same transaction: settles that tell of tasks ask it.
create or replace function flow.get_step_readiness_status_batch(task_ids uuid[], step_ids bigint[] default null)
returns setof flow.step_readiness
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off   -- the steps of these tasks and their parents, whatever the statistics say
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
begin
  return query
  select f.step_id, f.task_id, f.name, f.state, h.waits = 0,
         (f.attempts = 0 or (f.retryable and coalesce(f.attempts < f.retry_limit, true))) and e.is_expired,
         w.is_ready,
         f.last_failure_at, f.next_retry_at, p.total, p.completed, f.attempts, f.retry_limit, f.backoff_request_seconds,
         f.last_attempted_at, f.processed, f.in_process, f.retryable, e.is_expired,
         case when w.is_ready or f.in_process or h.finished_at is not null then null
              when r.finished_at is not null then 'task_over'
              when h.waits > 0 then 'dependencies'
              when h.parked_for = 'handler' then 'unserved'
              when h.parked_for is not null then 'no_move'
              when q.paused_at is not null then 'queue_paused'
              when f.state = 'error' then 'backoff'
              when h.last_event = 'snoozed' then 'snoozed'
              else 'scheduled' end
    from unnest(get_step_readiness_status_batch.task_ids) u (id)
    join holdfast.runs r on r.id = u.id
    join flow.steps f on f.task_id = r.id
    join holdfast.steps h on h.id = f.step_id
    left join holdfast.queues q on q.queue = h.queue
   cross join lateral (
     select count(*)::int as total, (count(*) filter (where s.state in ('complete', 'resolved_manually')))::int as completed
       from holdfast.edges e left join holdfast.steps s on s.id = e.step_id
      where e.next_id = h.id) p
   cross join lateral (select coalesce(f.next_retry_at <= clock, true) as is_expired) e
   cross join lateral (
     select coalesce(holdfast.is_due(h, clock) and q.paused_at is null and r.finished_at is null, false) as is_ready) w
   where get_step_readiness_status_batch.step_ids is null or f.step_id = any (get_step_readiness_status_batch.step_ids)
   order by f.task_id, f.step_id;
end
$$;

-- Which machine's steps a worker takes (null: any). Who claims by work.claim_next_task leaves the steps of runs to others.
-- Functions of the last release do not name the column and go on working.
alter table holdfast.workers add column machine text;

-- Functions that take more parameters now, or others.
-- squawk-ignore ban-drop-function
drop function if exists holdfast.define_policy(text, int, interval[], interval, numeric, interval, numeric, interval, text, boolean);
-- squawk-ignore ban-drop-function
drop function if exists flow.policy_with_tries(text, int);
-- squawk-ignore ban-drop-function
drop function if exists flow.adjusted_tries(int, int, boolean);
-- squawk-ignore ban-drop-function
drop function if exists flow.safe_transition_to(bigint, text, text);
