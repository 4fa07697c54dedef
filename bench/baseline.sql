-- The yardstick: the fewest statements by hand that claim, settle and journal steps, with runs and
-- dependencies. It has none of what makes an engine (no policies, tenants, roles, odd rows, closing rules): it shows what
-- PostgreSQL itself gives for this work on the machine at hand.
drop schema if exists baseline cascade;
create schema baseline;

create table baseline.moves (
  machine text, from_state text, event text, to_state text, primary key (machine, from_state, event));
insert into baseline.moves values
  ('work.task', 'pending', 'claimed', 'running'), ('work.task', 'running', 'succeeded', 'done'),
  ('flow.step', 'pending', 'claimed', 'in_progress'), ('flow.step', 'in_progress', 'succeeded', 'complete');

create table baseline.runs (
  id uuid primary key, total int not null, done int not null default 0, state text not null default 'pending',
  started_at timestamptz, finished_at timestamptz
) with (fillfactor = 50);

create sequence baseline.lease_ids;
create table baseline.steps (
  id bigint generated always as identity primary key, run_id uuid, machine text not null, kind text not null,
  queue text not null default 'default', state text not null, last_event text, due_at timestamptz,
  waits int not null default 0, priority smallint not null default 0, attempt int not null default 0, lease_id bigint,
  lease_owner text, lease_until timestamptz, input jsonb, result jsonb, finished_at timestamptz
) with (fillfactor = 70);
create index steps_due on baseline.steps (queue, priority, due_at, id) where due_at is not null;
create index steps_held on baseline.steps (lease_until) where lease_until is not null;
create table baseline.edges (step_id bigint, next_id bigint, primary key (step_id, next_id));

create table baseline.journal (
  id bigint generated always as identity, at timestamptz not null default clock_timestamp(), run_id uuid,
  step_id bigint not null, machine text not null, from_state text not null, event text not null, to_state text not null,
  worker text, attempt int,
  constraint legal_move check ((machine || ' ' || from_state || ' ' || event || ' ' || to_state) = any (array[
    'work.task pending claimed running', 'work.task running succeeded done',
    'flow.step pending claimed in_progress', 'flow.step in_progress succeeded complete'])));

create function baseline.journal_moves() returns trigger language plpgsql set enable_nestloop = off as $$
begin
  insert into baseline.journal (run_id, step_id, machine, from_state, event, to_state, worker, attempt)
  select n.run_id, n.id, n.machine, o.state, n.last_event, n.state, o.lease_owner, n.attempt
    from o join n using (id) where o.state <> n.state;
  return null;
end $$;
create trigger journaled after update on baseline.steps
  referencing old table as o new table as n for each statement execute function baseline.journal_moves();

create function baseline.claim(worker text, batch int, lease interval)
returns table (step_id bigint, run_id uuid, kind text, input jsonb, attempt int, lease_id bigint)
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
as $$
declare
  clock constant timestamptz := clock_timestamp();
begin
  return query
  update baseline.steps s
     set state = m.to_state, last_event = 'claimed', due_at = null, attempt = s.attempt + 1,
         lease_id = nextval('baseline.lease_ids'), lease_owner = claim.worker, lease_until = clock + claim.lease
    from baseline.moves m
   where s.id = any (array(
           select d.id from baseline.steps d
            where d.queue = 'default' and d.priority = 0 and d.due_at <= clock
            order by d.due_at, d.id limit claim.batch for update skip locked))
     and m.machine = s.machine and m.from_state = s.state and m.event = 'claimed'
  returning s.id, s.run_id, s.kind, s.input, s.attempt, s.lease_id;
end $$;

create function baseline.settle(ids bigint[], leases bigint[], results jsonb[])
returns setof bigint language plpgsql set plan_cache_mode = force_custom_plan as $$
declare
  clock constant timestamptz := clock_timestamp();
begin
  return query
  with done as (
    update baseline.steps s
       set state = m.to_state, last_event = 'succeeded', result = r.result, lease_id = null, lease_owner = null,
           lease_until = null, finished_at = clock
      from unnest(settle.ids, settle.leases, settle.results) r (id, lease, result), baseline.moves m
     where s.id = r.id and s.lease_id = r.lease
       and m.machine = s.machine and m.from_state = s.state and m.event = 'succeeded'
    returning s.id, s.run_id),
  freed as (
    update baseline.steps s
       set waits = s.waits - e.n, due_at = case when s.waits = e.n then clock end
      from (select g.next_id, count(*)::int as n from baseline.edges g join done on done.id = g.step_id group by 1) e
     where s.id = e.next_id),
  counted as (
    update baseline.runs r
       set done = r.done + d.n, started_at = coalesce(r.started_at, clock),
           state = case when r.done + d.n = r.total then 'complete' else 'in_progress' end,
           finished_at = case when r.done + d.n = r.total then clock end
      from (select x.run_id, count(*)::int as n from done x where x.run_id is not null group by 1) d
     where r.id = d.run_id)
  select done.id from done;
end $$;
