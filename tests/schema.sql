--
-- PostgreSQL database dump
--



SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: flow; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA flow;


--
-- Name: SCHEMA flow; Type: COMMENT; Schema: -; Owner: -
--

COMMENT ON SCHEMA flow IS 'Holdfast: workflows, in the words of the DAG engine';


--
-- Name: holdfast; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA holdfast;


--
-- Name: SCHEMA holdfast; Type: COMMENT; Schema: -; Owner: -
--

COMMENT ON SCHEMA holdfast IS 'Holdfast: the kernel';


--
-- Name: ops; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA ops;


--
-- Name: SCHEMA ops; Type: COMMENT; Schema: -; Owner: -
--

COMMENT ON SCHEMA ops IS 'Holdfast: runs that people and programs queue, watch and cancel';


--
-- Name: work; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA work;


--
-- Name: SCHEMA work; Type: COMMENT; Schema: -; Owner: -
--

COMMENT ON SCHEMA work IS 'Holdfast: single tasks, in the words of the leased worker loop';


--
-- Name: step_readiness; Type: TYPE; Schema: flow; Owner: -
--

CREATE TYPE flow.step_readiness AS (
	step_id bigint,
	task_id uuid,
	name text,
	current_state text,
	dependencies_satisfied boolean,
	retry_eligible boolean,
	ready_for_execution boolean,
	last_failure_at timestamp with time zone,
	next_retry_at timestamp with time zone,
	total_parents integer,
	completed_parents integer,
	attempts integer,
	retry_limit integer,
	backoff_request_seconds numeric,
	last_attempted_at timestamp with time zone,
	processed boolean,
	in_process boolean,
	retryable boolean,
	backoff_period_expired boolean,
	waiting_reason text
);


--
-- Name: task_execution_context; Type: TYPE; Schema: flow; Owner: -
--

CREATE TYPE flow.task_execution_context AS (
	task_id uuid,
	name text,
	namespace text,
	version text,
	state text,
	total_steps bigint,
	pending_steps bigint,
	in_progress_steps bigint,
	completed_steps bigint,
	failed_steps bigint,
	ready_steps bigint,
	blocked_steps bigint,
	execution_status text,
	recommended_action text,
	completion_percentage numeric,
	health_status text,
	earliest_retry_at timestamp with time zone
);


--
-- Name: admission; Type: TYPE; Schema: holdfast; Owner: -
--

CREATE TYPE holdfast.admission AS (
	ids bigint[],
	holds jsonb,
	charges jsonb,
	at timestamp with time zone,
	refused integer,
	full_ids bigint[],
	left_ids bigint[],
	ended_ids bigint[],
	pending bigint[],
	shared bigint[],
	tight integer
);


--
-- Name: claimed_step; Type: TYPE; Schema: holdfast; Owner: -
--

CREATE TYPE holdfast.claimed_step AS (
	step_id bigint,
	run_id uuid,
	kind text,
	input jsonb,
	attempt integer,
	lease_id bigint,
	lease_until timestamp with time zone,
	cursor jsonb
);


--
-- Name: due_position; Type: TYPE; Schema: holdfast; Owner: -
--

CREATE TYPE holdfast.due_position AS (
	due_at timestamp with time zone,
	id bigint
);


--
-- Name: limit_change; Type: TYPE; Schema: holdfast; Owner: -
--

CREATE TYPE holdfast.limit_change AS (
	limit_id bigint,
	event text,
	error_type text,
	held integer,
	parked integer,
	step_ids bigint[]
);


--
-- Name: pick; Type: TYPE; Schema: holdfast; Owner: -
--

CREATE TYPE holdfast.pick AS (
	ids bigint[],
	run_ids uuid[]
);


--
-- Name: run_delta; Type: TYPE; Schema: holdfast; Owner: -
--

CREATE TYPE holdfast.run_delta AS (
	run_id uuid,
	total integer,
	live integer,
	succeeded integer,
	failed integer,
	cancelled integer
);


--
-- Name: settled_step; Type: TYPE; Schema: holdfast; Owner: -
--

CREATE TYPE holdfast.settled_step AS (
	step_id bigint,
	event text,
	state text
);


--
-- Name: shared_move; Type: TYPE; Schema: holdfast; Owner: -
--

CREATE TYPE holdfast.shared_move AS (
	run_id uuid,
	from_state text,
	event text,
	to_state text,
	step_ids bigint[]
);


--
-- Name: step_move; Type: TYPE; Schema: holdfast; Owner: -
--

CREATE TYPE holdfast.step_move AS (
	step_id bigint,
	lease_id bigint,
	event text,
	due_at timestamp with time zone,
	result jsonb,
	error jsonb,
	cursor jsonb
);


--
-- Name: adjust_step(bigint, integer, boolean, numeric); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.adjust_step(step_id bigint, retry_limit integer DEFAULT NULL::integer, retryable boolean DEFAULT NULL::boolean, backoff_request_seconds numeric DEFAULT NULL::numeric) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  step constant holdfast.steps := flow.step_to_change(adjust_step.step_id);
begin
  perform flow.check_adjustment(step, adjust_step.retry_limit, adjust_step.backoff_request_seconds);
  perform holdfast.set_retry_budget(
    step, case when adjust_step.retry_limit = 0 then 1 else adjust_step.retry_limit end, adjust_step.retryable,
    make_interval(secs => adjust_step.backoff_request_seconds::float));
  perform holdfast.note_change(array[step.id], 'adjusted', jsonb_build_object(
    'retry_limit', adjust_step.retry_limit, 'retryable', adjust_step.retryable,
    'backoff_request_seconds', adjust_step.backoff_request_seconds));
end
$$;


--
-- Name: begin_task(text, jsonb, jsonb, text, text, text, text, text[], jsonb, interval); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.begin_task(name text, steps jsonb, context jsonb, namespace text, version text, key text, tenant text, skip text[], about jsonb, key_for interval DEFAULT NULL::interval) RETURNS uuid
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  checked_context constant jsonb := flow.checked_object('context', begin_task.context);
  checked_about constant jsonb := flow.checked_object('about', begin_task.about);
  skipped constant jsonb := case when begin_task.skip <> '{}'
    then jsonb_build_object('skip', begin_task.skip) else '{}' end;
  task_id uuid;
begin
  if begin_task.steps = '[]' then
    perform holdfast.refuse('RN005', format('flow %s has no steps', begin_task.name), 'add at least one step');
  end if;
  perform holdfast.check_name('namespace', begin_task.namespace);
  perform holdfast.check_name('version', begin_task.version);
  perform flow.check_skip(begin_task.steps, begin_task.skip);
  task_id := holdfast.begin_run(
    'flow.task', begin_task.name, 'flow.step', flow.fill_limits(begin_task.steps, checked_context),
    checked_about || skipped || jsonb_build_object(
      'context', checked_context, 'namespace', begin_task.namespace, 'version', begin_task.version),
    begin_task.key, begin_task.tenant, null, begin_task.key_for);
  if begin_task.skip <> '{}' then  -- under a key that was already used they are skipped, and nothing moves
    perform holdfast.set_actor('api', session_user::text, 'skipped by request');
    perform from holdfast.move_steps(array(
      select (n.step_id, null, 'resolved', null, null, null, null)::holdfast.step_move
        from holdfast.run_steps n where n.run_id = task_id and n.name = any (begin_task.skip)));
  end if;
  return task_id;
end
$$;


--
-- Name: calculate_dependency_levels(uuid); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.calculate_dependency_levels(task_id uuid) RETURNS TABLE(step_id bigint, name text, dependency_level integer)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
begin
  return query
  with recursive reached (id, level) as (
    select n.step_id, 0 from holdfast.run_steps n
     where n.run_id = calculate_dependency_levels.task_id
       and exists (select from holdfast.run_list r where r.id = n.run_id)
       and not exists (select from holdfast.edges e where e.next_id = n.step_id)
    union  -- not `all`: each step once per level, not once per path
    select e.next_id, r.level + 1 from reached r join holdfast.edges e on e.step_id = r.id)
  select n.step_id, n.name, max(r.level)
    from reached r
    join holdfast.run_steps n on n.run_id = calculate_dependency_levels.task_id and n.step_id = r.id
   group by n.step_id, n.name
   order by max(r.level), n.step_id;
end
$$;


--
-- Name: cancel_open(text[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.cancel_open(ids text[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
  step holdfast.steps;
  run holdfast.runs;
begin
  for step in
    select s.* from holdfast.steps s
     where s.id = any (array(select u.id::bigint from unnest(cancel_open.ids) u (id) where u.id ~ '^[0-9]{1,18}$'))
       and s.finished_at is null
     order by s.id
       for update
  loop
    continue when not exists (
      select from holdfast.machine_moves m
       where m.machine = step.machine and m.from_state = step.state and m.event = 'cancelled');
    perform holdfast.act_on_step(step, 'cancelled');
  end loop;
  for run in
    with recursive family as (
      select r.id from holdfast.runs r
       where r.id = any (array(select u.id::uuid from unnest(cancel_open.ids) u (id)
                                where u.id ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'))
      union
      select r.id from family f join holdfast.runs r on r.of_run = f.id)
    select r.* from holdfast.runs r
     where r.id = any (array(select f.id from family f)) and r.finished_at is null
     order by r.id
  loop
    begin
      perform holdfast.act_on_run(run, 'cancelled');
    exception when sqlstate 'RN010' then
      null;  -- it ended in between
    end;
  end loop;
end
$_$;


--
-- Name: cancel_open(text[], text); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.cancel_open(ids text[], reason text) RETURNS void
    LANGUAGE sql
    BEGIN ATOMIC
 SELECT holdfast.cancel_open(ids) AS cancel_open;
END;


--
-- Name: step_ids; Type: SEQUENCE; Schema: holdfast; Owner: -
--

CREATE SEQUENCE holdfast.step_ids
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: steps; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.steps (
    id bigint DEFAULT nextval('holdfast.step_ids'::regclass) NOT NULL,
    due_at timestamp with time zone,
    lease_until timestamp with time zone,
    finished_at timestamp with time zone,
    priority smallint DEFAULT 0 NOT NULL,
    queue text DEFAULT 'default'::text NOT NULL,
    last_event text,
    tenant text DEFAULT 'default'::text NOT NULL,
    kind text NOT NULL,
    unique_key text,
    parked_for text,
    lease_id bigint,
    run_id uuid,
    attempt integer DEFAULT 0 NOT NULL,
    machine text NOT NULL,
    state text NOT NULL,
    lease_owner text,
    error jsonb,
    created_at timestamp with time zone NOT NULL,
    claimed_at timestamp with time zone,
    parked_due_at timestamp with time zone,
    failures integer DEFAULT 0 NOT NULL,
    waits integer DEFAULT 0 NOT NULL,
    policy text,
    input jsonb DEFAULT '{}'::jsonb NOT NULL,
    cursor jsonb,
    result jsonb,
    failed_at timestamp with time zone,
    limits text[],
    weight numeric(20,6),
    holds bigint[],
    charge numeric(20,6),
    limited_by bigint,
    CONSTRAINT due_in_a_year_of_four_digits CHECK (((due_at >= '1900-01-01 00:00:00+00'::timestamp with time zone) AND (due_at <= '9999-01-01 00:00:00+00'::timestamp with time zone))),
    CONSTRAINT due_only_when_free CHECK (((due_at IS NULL) OR ((lease_id IS NULL) AND (finished_at IS NULL) AND (waits = 0)))),
    CONSTRAINT finished_holds_no_lease CHECK (((finished_at IS NULL) OR (lease_id IS NULL))),
    CONSTRAINT input_is_small CHECK ((pg_column_size(input) <= 1048576)),
    CONSTRAINT lease_is_whole CHECK ((((lease_id IS NULL) = (lease_until IS NULL)) AND ((lease_id IS NULL) = (lease_owner IS NULL)))),
    CONSTRAINT parked_keeps_its_due_time CHECK (((parked_for IS DISTINCT FROM 'handler'::text) OR (parked_due_at IS NOT NULL))),
    CONSTRAINT parked_only_when_free CHECK (((parked_due_at IS NULL) OR ((due_at IS NULL) AND (lease_id IS NULL) AND (finished_at IS NULL) AND (waits = 0)))),
    CONSTRAINT priority_is_0_to_9 CHECK (((priority >= 0) AND (priority <= 9))),
    CONSTRAINT waits_are_counted CHECK ((waits >= 0))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02');

ALTER TABLE ONLY holdfast.steps FORCE ROW LEVEL SECURITY;


--
-- Name: check_adjustment(holdfast.steps, integer, numeric); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.check_adjustment(step holdfast.steps, retry_limit integer, backoff_request_seconds numeric) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if check_adjustment.retry_limit < 0 then
    perform holdfast.refuse('RN005', format('retry_limit must be 0 or more, got %s', check_adjustment.retry_limit),
                            'it counts executions, the first included', 'retry_limit');
  end if;
  if step.finished_at is not null and step.state <> 'error' then
    perform holdfast.refuse('RN010', format('step %s is %s and will not be retried', step.id, step.state),
                            'flow.retry_from does a step of a finished task again, in a new task', step.id::text);
  end if;
  if check_adjustment.backoff_request_seconds not between 0 and 3e9 then
    perform holdfast.refuse(
      'RN005', format('backoff_request_seconds must be 0 to 3e9, got %s', check_adjustment.backoff_request_seconds),
      '3e9 seconds are a hundred years', 'backoff_request_seconds');
  end if;
end
$$;


--
-- Name: check_limits(jsonb); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.check_limits(steps jsonb) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform holdfast.check_limit_names(coalesce(holdfast.planned_limits(p.step), '{}')),
          holdfast.weight_for(null, case when p.step ->> 'weight' !~ '\{' then p.step ->> 'weight' end, 1, '{}')
     from jsonb_array_elements(check_limits.steps) p (step)
    where p.step ?| array['limits', 'weight'];
end
$$;


--
-- Name: check_skip(jsonb, text[]); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.check_skip(steps jsonb, skip text[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  odd constant text := (
    select min(u.name)
      from unnest(check_skip.skip) u (name)
     where not exists (select from jsonb_array_elements(check_skip.steps) p
                        where p ->> 'name' = u.name and (p ->> 'skippable')::boolean));
begin
  if odd is not null then
    perform holdfast.refuse(
      'RN005', format('step %s cannot be skipped', odd),
      coalesce('these can: ' || (select string_agg(p ->> 'name', ', ') from jsonb_array_elements(check_skip.steps) p
                                  where (p ->> 'skippable')::boolean),
               'no step of the flow is skippable'));
  end if;
end
$$;


--
-- Name: checked_object(text, jsonb); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.checked_object(field text, content jsonb) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if jsonb_typeof(checked_object.content) <> 'object' then
    perform holdfast.refuse('RN005', format('%s must be a JSON object, got %s', checked_object.field,
                                            jsonb_typeof(checked_object.content)),
                            'pass fields by name, such as {"order_id": 123}', checked_object.field);
  end if;
  return coalesce(checked_object.content, '{}');
end
$$;


--
-- Name: closed_tasks(text, bigint[]); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.closed_tasks(worker text, step_ids bigint[]) RETURNS TABLE(task_id uuid, name text, namespace text, version text, completed_steps bigint, failed_steps bigint, at timestamp with time zone, moves jsonb)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return query
  select r.id, r.name, coalesce(r.input ->> 'namespace', 'default'), coalesce(r.input ->> 'version', '0.1.0'),
         r.succeeded::bigint, r.failed::bigint, holdfast.clock(), flow.moves_by(r, closed_tasks.worker)
    from holdfast.runs r
   where r.id = any (array(select distinct s.run_id from holdfast.steps s where s.id = any (closed_tasks.step_ids)))
     and r.machine = 'flow.task' and r.finished_at is not null and holdfast.matches_any(allowed, r.tenant)
   order by r.id;
end
$$;


--
-- Name: define_flow(text, jsonb, text, text, text, jsonb); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.define_flow(name text, steps jsonb, namespace text DEFAULT 'default'::text, version text DEFAULT '0.1.0'::text, description text DEFAULT NULL::text, context_schema jsonb DEFAULT NULL::jsonb) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  tenants constant text[] := holdfast.tenants_to_define(format('flow %s', define_flow.name));
begin
  perform holdfast.check_name('the name of a flow', coalesce(define_flow.name, ''));
  perform holdfast.check_name('namespace', define_flow.namespace);
  perform holdfast.check_name('version', define_flow.version);
  perform holdfast.check_plan(null, define_flow.steps);
  perform flow.check_limits(define_flow.steps);
  if define_flow.steps = '[]' then
    perform holdfast.refuse('RN005', format('flow %s has no steps', define_flow.name), 'add at least one step');
  end if;
  insert into flow.definitions as d (namespace, name, version, tenant, description, steps, context_schema, defined_at)
  select define_flow.namespace, define_flow.name, define_flow.version, t.tenant,
    define_flow.description, define_flow.steps,
         define_flow.context_schema, holdfast.clock()
    from unnest(tenants) t (tenant)
   order by t.tenant
  on conflict on constraint definitions_pkey do update
    set description = excluded.description, steps = excluded.steps, context_schema = excluded.context_schema,
        defined_at = excluded.defined_at
    -- Each worker defines its flows when it starts; only changes are written.
    where (d.description, d.steps, d.context_schema)
          is distinct from (excluded.description, excluded.steps, excluded.context_schema);
end
$$;


--
-- Name: definitions; Type: TABLE; Schema: flow; Owner: -
--

CREATE TABLE flow.definitions (
    namespace text NOT NULL,
    name text NOT NULL,
    version text NOT NULL,
    description text,
    steps jsonb NOT NULL,
    context_schema jsonb,
    defined_at timestamp with time zone NOT NULL,
    tenant text DEFAULT '*'::text NOT NULL
);

ALTER TABLE ONLY flow.definitions FORCE ROW LEVEL SECURITY;


--
-- Name: definition_to_start(text, jsonb, text, text, text); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.definition_to_start(name text, context jsonb, namespace text, version text, tenant text) RETURNS flow.definitions
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  request constant jsonb := flow.checked_object('context', definition_to_start.context);
  definition flow.definitions;
  missing text;
begin
  select d.* into definition from flow.definitions d
   where d.namespace = definition_to_start.namespace and d.name = definition_to_start.name
     and d.tenant in (definition_to_start.tenant, '*')
     and holdfast.matches(definition_to_start.version, d.version)
   order by d.tenant = '*', d.defined_at desc
   limit 1;
  if definition.name is null then
    perform holdfast.refuse(
      'RN004', format('there is no flow %s%s in namespace %s', definition_to_start.name,
                      ' of version ' || definition_to_start.version, definition_to_start.namespace),
      coalesce('defined are: ' || (select string_agg(distinct concat_ws(' ', d.namespace, d.name, d.version), ', ')
                                     from flow.definitions d where d.tenant in (definition_to_start.tenant, '*')),
               'none is defined: start a worker that serves it'));
  end if;
  select min(r.field) into missing
    from jsonb_array_elements_text(coalesce(definition.context_schema -> 'required', '[]')) r (field)
   where not request ? r.field;
  if missing is not null then
    perform holdfast.refuse('RN005', format('the context of flow %s lacks %s', definition_to_start.name, missing),
                            'see context_schema of its definition', 'context');
  end if;
  return definition;
end
$$;


--
-- Name: fill_limits(jsonb, jsonb); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.fill_limits(steps jsonb, context jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
begin
  if not coalesce(fill_limits.steps @? '$[*] ? (exists (@.limits) || exists (@.weight))', false) then
    return fill_limits.steps;
  end if;
  return (
    select jsonb_agg((p.step - 'limits' - 'weight') || jsonb_strip_nulls(jsonb_build_object(
             'limits', case when p.step ? 'limits' then to_jsonb(array(
               select holdfast.fill_template(t.name, fill_limits.context, 'context')
                 from unnest(holdfast.planned_limits(p.step)) with ordinality t (name, no)
                order by t.no)) end,
             -- A weight of 0 is for kinds whose calls have a weight, which add_steps knows.
             'weight', case when p.step ? 'weight' then holdfast.weight_for(
               null, holdfast.fill_template(p.step ->> 'weight', fill_limits.context, 'context'), 1, '{}') end))
           order by p.no)
      from jsonb_array_elements(fill_limits.steps) with ordinality p (step, no));
end
$_$;


--
-- Name: runs; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.runs (
    id uuid NOT NULL,
    machine text NOT NULL,
    name text NOT NULL,
    state text NOT NULL,
    last_event text,
    moving text,
    moved_until bigint DEFAULT 0 NOT NULL,
    tenant text DEFAULT 'default'::text NOT NULL,
    of_run uuid,
    total integer DEFAULT 0 NOT NULL,
    live integer DEFAULT 0 NOT NULL,
    succeeded integer DEFAULT 0 NOT NULL,
    failed integer DEFAULT 0 NOT NULL,
    cancelled integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    input jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT counts_add_up CHECK (((live >= 0) AND (succeeded >= 0) AND (failed >= 0) AND (cancelled >= 0) AND ((((live + succeeded) + failed) + cancelled) <= total))),
    CONSTRAINT moving_is_known CHECK ((moving = ANY (ARRAY['cancelled'::text, 'reopened'::text])))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.05');

ALTER TABLE ONLY holdfast.runs FORCE ROW LEVEL SECURITY;


--
-- Name: finished_task_of(bigint); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.finished_task_of(step_id bigint) RETURNS holdfast.runs
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  task holdfast.runs;
begin
  select r.* into task
    from holdfast.steps s join holdfast.runs r on r.id = s.run_id
   where s.id = finished_task_of.step_id and r.machine = 'flow.task' and holdfast.matches_any(allowed, r.tenant)
     for update of r;
  if task.id is null then
    perform holdfast.refuse_pruned(finished_task_of.step_id::text);
    perform holdfast.refuse('RN004', format('there is no step %s of a flow''s task', finished_task_of.step_id),
                            'flow.steps lists them', finished_task_of.step_id::text);
  end if;
  if task.finished_at is null then
    perform holdfast.refuse('RN010', format('task %s is %s, not finished', task.id, task.state),
                            'retry its failed step with holdfast.retry, or cancel the task first', task.id::text);
  end if;
  return task;
end
$$;


--
-- Name: get_step_readiness_status(uuid, bigint[]); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.get_step_readiness_status(task_id uuid, step_ids bigint[] DEFAULT NULL::bigint[]) RETURNS SETOF flow.step_readiness
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  return query
  select b.*
    from flow.get_step_readiness_status_batch(array[get_step_readiness_status.task_id],
                                              get_step_readiness_status.step_ids) b;
end
$$;


--
-- Name: get_step_readiness_status_batch(uuid[], bigint[]); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.get_step_readiness_status_batch(task_ids uuid[], step_ids bigint[] DEFAULT NULL::bigint[]) RETURNS SETOF flow.step_readiness
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
begin
  return query
  select f.step_id, f.task_id, f.name, f.state, h.waits = 0,
         (f.attempts = 0 or (f.retryable and coalesce(f.attempts < f.retry_limit, true))) and e.is_expired,
         w.is_ready,
         f.last_failure_at, f.next_retry_at, p.total, p.completed, f.attempts, f.retry_limit,
         f.backoff_request_seconds, f.last_attempted_at, f.processed, f.in_process, f.retryable, e.is_expired,
         case when w.is_ready or f.in_process or h.finished_at is not null then null
              when r.finished_at is not null then 'task_over'
              when h.waits > 0 then 'dependencies'
              when h.parked_for = 'handler' then 'unserved'
              when h.parked_for = 'move' then 'no_move'
              when h.parked_for = 'limit' then 'limited'
              when h.parked_for is not null then 'parked'
              when q.paused_at is not null then 'queue_paused'
              when holdfast.is_due(h, clock) then 'limited'
              when f.state = 'error' then 'backoff'
              when h.last_event = 'snoozed' then 'snoozed'
              else 'scheduled' end
    from unnest(get_step_readiness_status_batch.task_ids) u (id)
    join holdfast.runs r on r.id = u.id
    join flow.steps f on f.task_id = r.id
    join holdfast.steps h on h.id = f.step_id
    left join holdfast.queues q on q.queue = h.queue
   cross join lateral (
     select count(*)::int as total,
            (count(*) filter (where s.state in ('complete', 'resolved_manually')))::int as completed
       from holdfast.edges e left join holdfast.steps s on s.id = e.step_id
      where e.next_id = h.id) p
   cross join lateral (select coalesce(f.next_retry_at <= clock, true) as is_expired) e
   cross join lateral (
     select coalesce(
       holdfast.is_ready(h, clock) and q.paused_at is null and r.finished_at is null, false) as is_ready) w
   where get_step_readiness_status_batch.step_ids is null
      or f.step_id = any (get_step_readiness_status_batch.step_ids)
   order by f.task_id, f.step_id;
end
$$;


--
-- Name: get_system_health_counts(); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.get_system_health_counts() RETURNS TABLE(total_tasks bigint, pending_tasks bigint, in_progress_tasks bigint, complete_tasks bigint, error_tasks bigint, cancelled_tasks bigint, resolved_tasks bigint, total_steps bigint, pending_steps bigint, in_progress_steps bigint, complete_steps bigint, error_steps bigint, cancelled_steps bigint, ready_steps bigint, retryable_error_steps bigint, exhausted_retry_steps bigint, in_backoff_steps bigint, connections integer, max_connections integer)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  clock constant timestamptz := holdfast.clock();
  -- Of finished tasks, only a cancelled one whose steps are still being moved has due steps.
  ended constant uuid[] := array(select r.id from holdfast.runs r where r.moving = 'cancelled');
begin
  return query
  with tasks as (
    select count(*) as total, count(*) filter (where r.state = 'pending') as pending,
           count(*) filter (where r.state = 'in_progress') as in_progress,
             count(*) filter (where r.state = 'complete') as complete,
           count(*) filter (where r.state = 'error') as error,
             count(*) filter (where r.state = 'cancelled') as cancelled,
           count(*) filter (where r.state = 'resolved_manually') as resolved,
             coalesce(sum(r.total), 0)::bigint as steps,
           coalesce(sum(r.succeeded), 0)::bigint as succeeded, coalesce(sum(r.failed), 0)::bigint as failed,
           coalesce(sum(r.cancelled), 0)::bigint as dropped
      from holdfast.runs r where r.machine = 'flow.task' and holdfast.matches_any(allowed, r.tenant)),
  due as (
    select count(*) filter (where s.state = 'error') as retryable,
           count(*) filter (where s.state = 'error' and not holdfast.is_due(s, clock)) as in_backoff,
           count(*) filter (where holdfast.is_ready(s, clock) and q.paused_at is null
                            and s.run_id <> all (ended)) as ready
      from holdfast.steps s left join holdfast.queues q on q.queue = s.queue
     where s.due_at is not null and s.machine = 'flow.step' and holdfast.matches_any(allowed, s.tenant)),
  parked as (
    select count(*) filter (where s.state = 'error') as retryable
      from holdfast.steps s
     where s.parked_for is not null and s.parked_due_at is not null and s.machine = 'flow.step'
       and holdfast.matches_any(allowed, s.tenant)),
  held as (
    select count(*) as total from holdfast.steps s
     where s.lease_until is not null and s.machine = 'flow.step' and holdfast.matches_any(allowed, s.tenant))
  select t.total, t.pending, t.in_progress, t.complete, t.error, t.cancelled, t.resolved, t.steps,
         t.steps - t.succeeded - t.failed - t.dropped - h.total - d.retryable - p.retryable, h.total, t.succeeded,
         t.failed + d.retryable + p.retryable, t.dropped, d.ready, d.retryable + p.retryable, t.failed, d.in_backoff,
         (select b.numbackends from pg_stat_database b where b.datname = current_database()),
         current_setting('max_connections')::int
    from tasks t, due d, parked p, held h;
end
$$;


--
-- Name: get_task_execution_context(uuid); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.get_task_execution_context(task_id uuid) RETURNS SETOF flow.task_execution_context
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  return query
  select c.* from flow.get_task_execution_context_batch(array[get_task_execution_context.task_id]) c;
end
$$;


--
-- Name: get_task_execution_context_batch(uuid[]); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.get_task_execution_context_batch(task_ids uuid[]) RETURNS SETOF flow.task_execution_context
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  return query
  with counted as (
    select t.task_id, t.name, t.namespace, t.version, t.state, count(b.step_id) as total,
           count(*) filter (where b.current_state = 'pending') as pending,
             count(*) filter (where b.in_process) as in_progress,
           count(*) filter (where b.processed) as completed,
             count(*) filter (where b.current_state = 'error') as failed,
           count(*) filter (where b.ready_for_execution) as ready,
           count(*) filter (where b.current_state = 'cancelled'
                            or (b.current_state = 'error' and b.next_retry_at is null)) as blocked,
           min(b.next_retry_at) as earliest_retry_at
      from unnest(get_task_execution_context_batch.task_ids) u (id)
      join flow.tasks t on t.task_id = u.id
      left join flow.get_step_readiness_status_batch(get_task_execution_context_batch.task_ids) b
        on b.task_id = t.task_id
     group by t.task_id, t.name, t.namespace, t.version, t.state)
  select c.task_id, c.name, c.namespace, c.version, c.state, c.total, c.pending, c.in_progress,
    c.completed, c.failed, c.ready,
         c.blocked, j.execution_status, j.recommended_action, j.completion_percentage,
           j.health_status, c.earliest_retry_at
    from counted c
   cross join lateral flow.judge_counts(c.state, c.total, c.completed, c.failed, c.ready, c.in_progress, c.blocked) j
   order by c.task_id;
end
$$;


--
-- Name: initialize_task(text, jsonb, jsonb, text, text, text, text, text[], jsonb, interval); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.initialize_task(name text, steps jsonb, context jsonb DEFAULT '{}'::jsonb, namespace text DEFAULT 'default'::text, version text DEFAULT '0.1.0'::text, key text DEFAULT NULL::text, tenant text DEFAULT 'default'::text, skip text[] DEFAULT '{}'::text[], about jsonb DEFAULT '{}'::jsonb, key_for interval DEFAULT NULL::interval) RETURNS uuid
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  task_id uuid;
begin
  perform holdfast.set_actor('api', session_user::text);
  task_id := flow.begin_task(
    initialize_task.name, initialize_task.steps, initialize_task.context, initialize_task.namespace,
    initialize_task.version, initialize_task.key, initialize_task.tenant, initialize_task.skip, initialize_task.about,
    initialize_task.key_for);
  perform holdfast.set_actor();
  return task_id;
end
$$;


--
-- Name: is_any_open(text[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.is_any_open(ids text[]) RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
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
$_$;


--
-- Name: is_any_open(text[]); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.is_any_open(ids text[]) RETURNS boolean
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT holdfast.is_any_open(ids) AS is_any_open;
END;


--
-- Name: judge_counts(text, bigint, bigint, bigint, bigint, bigint, bigint); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.judge_counts(state text, total bigint, completed bigint, failed bigint, ready bigint, in_progress bigint, blocked bigint) RETURNS TABLE(execution_status text, recommended_action text, completion_percentage numeric, health_status text)
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT e.status,
         CASE e.status
             WHEN 'has_ready_steps'::text THEN 'execute_ready_steps'::text
             WHEN 'processing'::text THEN 'wait_for_completion'::text
             WHEN 'blocked_by_failures'::text THEN 'handle_failures'::text
             WHEN 'all_complete'::text THEN 'finalize_task'::text
             ELSE 'wait_for_dependencies'::text
         END AS "case",
     COALESCE(round(((100.0 * (judge_counts.completed)::numeric) / (NULLIF(judge_counts.total, 0))::numeric), 2), 100.00) AS "coalesce",
         CASE
             WHEN (judge_counts.total = 0) THEN 'unknown'::text
             WHEN (e.status = 'blocked_by_failures'::text) THEN 'blocked'::text
             WHEN ((judge_counts.failed > 0) AND (e.status <> 'all_complete'::text)) THEN 'recovering'::text
             ELSE 'healthy'::text
         END AS "case"
    FROM ( SELECT
                 CASE
                     WHEN (judge_counts.ready > 0) THEN 'has_ready_steps'::text
                     WHEN (judge_counts.in_progress > 0) THEN 'processing'::text
                     WHEN ((judge_counts.blocked > 0) AND (judge_counts.state <> 'resolved_manually'::text)) THEN 'blocked_by_failures'::text
                     WHEN ((judge_counts.completed = judge_counts.total) OR (judge_counts.state = 'resolved_manually'::text)) THEN 'all_complete'::text
                     ELSE 'waiting_for_dependencies'::text
                 END AS status) e;
END;


--
-- Name: moves_by(holdfast.runs, text); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.moves_by(task holdfast.runs, worker text) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  -- The bounds exclude the partitions of other months, with a day of slack because clocks are set back.
  earliest constant timestamptz := task.created_at - interval '1 day';
  latest constant timestamptz := holdfast.clock() + interval '1 day';
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object('id', j.id, 'event', j.event, 'state',
                                                 j.to_state) order by j.id), '[]')
      from holdfast.journal j
     where j.run_id = task.id and j.step_id is null and j.actor_kind = 'worker' and j.actor = moves_by.worker
       and j.at between earliest and latest);
end
$$;


--
-- Name: edges; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.edges (
    step_id bigint NOT NULL,
    next_id bigint NOT NULL,
    CONSTRAINT waits_for_another CHECK ((step_id <> next_id))
)
WITH (autovacuum_vacuum_scale_factor='0.05');

ALTER TABLE ONLY holdfast.edges FORCE ROW LEVEL SECURITY;


--
-- Name: run_steps; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.run_steps (
    run_id uuid NOT NULL,
    step_id bigint NOT NULL,
    name text
)
WITH (autovacuum_vacuum_scale_factor='0.05');

ALTER TABLE ONLY holdfast.run_steps FORCE ROW LEVEL SECURITY;


--
-- Name: plan_of_run(uuid, bigint[]); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.plan_of_run(run_id uuid, afresh bigint[]) RETURNS jsonb
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 WITH kept AS (
          SELECT n.step_id,
             n.name
            FROM holdfast.run_steps n
           WHERE ((n.run_id = plan_of_run.run_id) AND (NOT (EXISTS ( SELECT
                    FROM holdfast.run_steps f
                   WHERE ((f.run_id = n.run_id) AND (f.step_id = ANY (plan_of_run.afresh)) AND (starts_with(n.name, (f.name || '['::text)) OR starts_with(n.name, (f.name || '.'::text))))))))
         )
  SELECT jsonb_agg((jsonb_strip_nulls(jsonb_build_object('name', k.name, 'kind', s.kind, 'queue', s.queue, 'priority', s.priority, 'policy', s.policy, 'limits', s.limits, 'weight', s.weight, 'after', ( SELECT jsonb_agg(p.name ORDER BY p.step_id) AS jsonb_agg
            FROM (holdfast.edges e
              JOIN kept p ON ((p.step_id = e.step_id)))
           WHERE (e.next_id = s.id)))) || jsonb_build_object('input', s.input)) ORDER BY s.id) AS jsonb_agg
    FROM (kept k
      JOIN holdfast.steps s ON ((s.id = k.step_id)));
END;


--
-- Name: refuse_write(); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.refuse_write() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if tg_table_name like '%_transitions' then
    perform holdfast.refuse('RN008', format('%s is append-only: %s is refused', tg_table_name, lower(tg_op)),
                            'each move of a task or a step writes its own entry');
  end if;
  perform holdfast.refuse('RN005', format('flow.%s cannot be changed by %s', tg_table_name, lower(tg_op)), case tg_op
    when 'INSERT' then 'start a task with flow.start_task(name, context) or flow.initialize_task(name, steps, context)'
    when 'UPDATE' then 'retry a failed task with holdfast.retry, resolve it with holdfast.resolve, '
                       'cancel it with holdfast.cancel'
    else 'end a task with holdfast.cancel; retention removes finished tasks by the rules of holdfast.retention_list, '
         'at once with `holdfast retention run`' end);
  return null;
end
$$;


--
-- Name: allowed_tenants(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.allowed_tenants() RETURNS text[]
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  narrowed constant text := current_setting('holdfast.tenants', true);
  tenants text[] := array(select t.tenant from holdfast.role_tenants t where t.role_name = session_user);
begin
  if tenants = '{}' then
    tenants := array(select t.tenant from holdfast.role_tenants t
                      where pg_has_role(session_user, to_regrole(quote_ident(t.role_name)), 'member'));
  end if;
  if '*' = any (tenants) or (select r.rolsuper from pg_roles r where r.rolname = session_user) then
    tenants := null;
  end if;
  if narrowed <> '' then  -- '' is left behind by a transaction that set it
    return holdfast.narrow_to_setting(tenants, narrowed);
  end if;
  return tenants;
end
$$;


--
-- Name: result_in_run(uuid, text); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.result_in_run(run_id uuid, name text) RETURNS jsonb
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT
         CASE
             WHEN ((s.cursor ? 'mapped'::text) AND (COALESCE(s.result, s.cursor) = s.cursor)) THEN ( SELECT COALESCE(jsonb_agg(COALESCE(i.result, 'null'::jsonb) ORDER BY i.id), '[]'::jsonb) AS "coalesce"
                FROM ((holdfast.edges e
                  JOIN holdfast.steps i ON ((i.id = e.step_id)))
                  JOIN holdfast.run_steps m ON (((m.run_id = i.run_id) AND (m.step_id = i.id))))
               WHERE ((e.next_id = s.id) AND starts_with(m.name, (n.name || '['::text))))
             ELSE COALESCE(s.result, 'null'::jsonb)
         END AS "coalesce"
    FROM (holdfast.run_steps n
      JOIN holdfast.steps s ON ((s.id = n.step_id)))
   WHERE ((n.run_id = result_in_run.run_id) AND (n.name = result_in_run.name) AND COALESCE((s.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true));
END;


--
-- Name: retry_from(bigint, text); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.retry_from(step_id bigint, reason text DEFAULT NULL::text) RETURNS uuid
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  task holdfast.runs;
  again bigint[];
  afresh bigint[];
  task_id constant uuid := holdfast.uuid7();
begin
  perform holdfast.check_reason(retry_from.reason);
  task := flow.finished_task_of(retry_from.step_id);
  select array_agg(r.id), array_agg(r.id) filter (where r.is_afresh) into again, afresh
    from flow.waiting_for(retry_from.step_id) r;
  perform holdfast.set_actor('user', session_user::text,
                       coalesce(retry_from.reason, format('from step %s of task %s', retry_from.step_id, task.id)));
  perform holdfast.make_run(
    task_id, task.machine, task.name, 'flow.step', flow.plan_of_run(task.id, afresh),
    (task.input - 'reason') || jsonb_strip_nulls(
      jsonb_build_object('retried_from', retry_from.step_id, 'reason', retry_from.reason)),
    task.tenant, task.id);
  perform holdfast.copy_cursors(task.id, task_id, afresh);  -- the progress of mapped steps and sub-flows
  perform from holdfast.move_steps(array(
    select (n.step_id, null, 'resolved', null, o.result, null, null)::holdfast.step_move
      from holdfast.run_steps n
      join holdfast.run_steps m on m.run_id = task.id and m.name = n.name
      join holdfast.steps o on o.id = m.step_id and o.finished_at is not null
      join holdfast.machine_states t on t.machine = o.machine and t.state = o.state and t.outcome = 'succeeded'
     where n.run_id = task_id
       and o.id <> all (again)  -- guard: taken-over
  ));
  perform holdfast.set_actor();
  return task_id;
end
$$;


--
-- Name: safe_transition_to(anycompatible, text, text, text); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.safe_transition_to(id anycompatible, state text, reason text DEFAULT NULL::text, actor text DEFAULT NULL::text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  subject constant text := safe_transition_to.id::text;
  before constant text := flow.state_to_change(subject);
  event constant text := case safe_transition_to.state
    when 'pending' then 'reopened' when 'resolved_manually' then 'resolved' when 'cancelled' then 'cancelled' end;
begin
  if before = safe_transition_to.state then
    return false;
  end if;
  if event is null then
    perform holdfast.refuse('RN010', format('%s is %s and cannot be made %s', subject, before,
                                            safe_transition_to.state),
                            'choose pending, resolved_manually or cancelled; workers make all other moves', subject);
  end if;
  perform holdfast.act_on(subject, event, safe_transition_to.reason, actor => safe_transition_to.actor);
  return true;
end
$$;


--
-- Name: settled_tasks(text, bigint[]); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.settled_tasks(worker text, step_ids bigint[]) RETURNS TABLE(task_id uuid, name text, namespace text, version text, state text, total_steps bigint, pending_steps bigint, in_progress_steps bigint, completed_steps bigint, failed_steps bigint, ready_steps bigint, blocked_steps bigint, execution_status text, recommended_action text, completion_percentage numeric, health_status text, earliest_retry_at timestamp with time zone, at timestamp with time zone, steps jsonb, moves jsonb)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
begin
  return query
  select t.task_id, t.name, t.namespace, t.version, r.state, r.total::bigint,
         r.total - r.succeeded - r.failed - r.cancelled - a.retrying - a.in_progress,
           a.in_progress, r.succeeded::bigint,
         r.failed + a.retrying, a.ready, (r.failed + r.cancelled)::bigint, j.execution_status, j.recommended_action,
         j.completion_percentage, j.health_status, a.earliest_retry_at, clock, t.steps, t.moves
    from flow.touched_tasks(settled_tasks.worker, settled_tasks.step_ids) t
    join holdfast.runs r on r.id = t.task_id
   cross join lateral (
     select count(*) filter (where s.lease_id is not null) as in_progress,
            count(*) filter (where holdfast.is_ready(s, clock) and q.paused_at is null
                             and r.finished_at is null) as ready,
            count(*) filter (where s.state = 'error' and s.finished_at is null) as retrying,
            count(*) filter (where holdfast.is_live(s)) as live,
            min(case when s.state = 'error' then coalesce(s.due_at, s.parked_due_at) end) as earliest_retry_at
       from flow.steps_around(r, array(select k::bigint from jsonb_object_keys(t.steps) k)) n (id)
       join holdfast.steps s on s.id = n.id
       left join holdfast.queues q on q.queue = s.queue) a
   cross join lateral flow.judge_counts(
     r.state, r.total, r.succeeded, r.failed + a.retrying, a.ready, greatest(a.in_progress, r.live - a.live),
       r.failed + r.cancelled) j
   order by t.task_id;
end
$$;


--
-- Name: start_for_tick(text, jsonb, jsonb, text); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.start_for_tick(target text, input jsonb, options jsonb, tenant text) RETURNS text[]
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  definition constant flow.definitions := flow.definition_to_start(
    start_for_tick.target, start_for_tick.input, coalesce(start_for_tick.options ->> 'namespace', 'default'),
    start_for_tick.options ->> 'version', start_for_tick.tenant);
begin
  perform holdfast.refuse_options('flow', start_for_tick.options, '{namespace,version,skip,about}');
  return array[flow.begin_task(
    definition.name, definition.steps, start_for_tick.input, definition.namespace, definition.version, null,
    start_for_tick.tenant, array(select jsonb_array_elements_text(coalesce(start_for_tick.options -> 'skip', '[]'))),
    start_for_tick.options -> 'about')::text];
end
$$;


--
-- Name: start_task(text, jsonb, text, text, text, text, text[], jsonb, interval); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.start_task(name text, context jsonb DEFAULT '{}'::jsonb, namespace text DEFAULT 'default'::text, version text DEFAULT NULL::text, key text DEFAULT NULL::text, tenant text DEFAULT 'default'::text, skip text[] DEFAULT '{}'::text[], about jsonb DEFAULT '{}'::jsonb, key_for interval DEFAULT NULL::interval) RETURNS uuid
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  definition constant flow.definitions := flow.definition_to_start(
    start_task.name, start_task.context, start_task.namespace, start_task.version, start_task.tenant);
begin
  return flow.initialize_task(definition.name, definition.steps, start_task.context, definition.namespace,
                              definition.version, start_task.key, start_task.tenant, start_task.skip, start_task.about,
                              start_task.key_for);
end
$$;


--
-- Name: state_to_change(text); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.state_to_change(id text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  state text;
begin
  if state_to_change.id ~ '^[0-9]{1,18}$' then
    return (flow.step_to_change(state_to_change.id::bigint)).state;
  end if;
  if state_to_change.id ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    select r.state into state from holdfast.runs r
     where r.id = state_to_change.id::uuid and r.machine = 'flow.task' and holdfast.matches_any(allowed, r.tenant);
  end if;
  if state is null then
    perform holdfast.refuse_pruned(state_to_change.id);
    perform holdfast.refuse('RN004', format('there is no step or task %s of a flow', state_to_change.id),
                            'a step is a number, a task a UUID; flow.steps and flow.tasks list them',
                            state_to_change.id);
  end if;
  return state;
end
$_$;


--
-- Name: states_from_history(uuid); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.states_from_history(task_id uuid) RETURNS TABLE(step_id bigint, name text, state text, moves bigint, last_moved_at timestamp with time zone)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return query
  select null::bigint, t.name, last.to_state, h.moves, last.at
    from holdfast.runs t
   cross join lateral (
     select count(*) as moves, max(j.id) as id from holdfast.journal j where j.run_id = t.id and j.step_id is null) h
    left join lateral (
     select j.to_state, j.at from holdfast.journal j where j.run_id = t.id and j.step_id is null
       and j.id = h.id) last on true
   where t.id = states_from_history.task_id and t.machine = 'flow.task' and holdfast.matches_any(allowed, t.tenant)
  union all
  select s.id, n.name, coalesce(last.to_state, case when s.last_event is null then b.state end), h.moves, last.at
    from holdfast.run_steps n
    join holdfast.steps s on s.id = n.step_id
    join holdfast.machine_states b on b.machine = s.machine and b.is_initial
   cross join lateral (select count(*) as moves, max(j.id) as id from holdfast.journal j where j.step_id = s.id) h
    left join lateral (select j.to_state, j.at from holdfast.journal j where j.step_id = s.id
                       and j.id = h.id) last on true
   where n.run_id = states_from_history.task_id and holdfast.matches_any(allowed, s.tenant);
end
$$;


--
-- Name: step_outcomes(uuid, text[]); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.step_outcomes(task_id uuid, names text[] DEFAULT NULL::text[]) RETURNS TABLE(step_id bigint, name text, state text, outcome text, result jsonb, error jsonb)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return query
  select s.id, n.name, s.state, case when s.finished_at is not null then t.outcome end,
         case when s.finished_at is not null then flow.result_in_run(n.run_id, n.name) end, s.error
    from holdfast.runs r  -- a large run is pruned before its steps
    join holdfast.run_steps n on n.run_id = r.id
    join holdfast.steps s on s.id = n.step_id
    join holdfast.machine_states t on t.machine = s.machine and t.state = s.state
   where r.id = step_outcomes.task_id and holdfast.matches_any(step_outcomes.names, n.name)
     and holdfast.matches_any(allowed, s.tenant)
   order by s.id;
end
$$;


--
-- Name: step_surroundings(bigint[], bigint[], text[], text[], text[]); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.step_surroundings(step_ids bigint[], of_steps bigint[], arguments text[], names text[], sources text[]) RETURNS TABLE(step_id bigint, version text, input jsonb)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $_$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return query
  select w.step_id, min(p.opening ->> 'version'),
         coalesce(jsonb_object_agg(w.argument, v.value) filter (where w.argument is not null
                                                                and v.value is not null), '{}')
    from (select * from unnest(step_surroundings.of_steps, step_surroundings.arguments, step_surroundings.names,
                               step_surroundings.sources)
          union all
          select u.id, null, null, null from unnest(step_surroundings.step_ids) u (id)) w (step_id,
            argument, name, source)
   -- One entry at a time: as a join of two lists, a plan made for a few entries would be a loop over both.
   cross join lateral (
     select s.id, s.run_id, s.input as own from holdfast.steps s
      where s.id = w.step_id and holdfast.matches_any(allowed, s.tenant) offset 0) h
   cross join lateral (
     select m.name, case when strpos(m.name, '.') > 0 then substring(m.name from '^(.*)\.[^.]*$') end as scope
       from holdfast.run_steps m where m.run_id = h.run_id and m.step_id = h.id offset 0) n
   cross join lateral (select q.input as request from holdfast.runs q where q.id = h.run_id offset 0) r
   cross join lateral (  -- the steps of a sub-flow have the context that its opening step returned
     select case when n.scope is null then r.request else (
              select o.cursor from holdfast.run_steps m join holdfast.steps o on o.id = m.step_id
               where m.run_id = h.run_id and m.name = n.scope) end as opening offset 0) p
   cross join lateral (
     select case w.source
              when 'context' then p.opening -> 'context' -> w.name
              when 'whole' then p.opening -> 'context'
              when 'own' then h.own -> w.name
              when 'name' then to_jsonb(n.name)
              when 'trace' then r.request -> 'trace'
              when 'inner' then (
                select jsonb_object_agg(substr(m.name, length(n.name) + 2), flow.result_in_run(h.run_id, m.name))
                  from holdfast.edges e
                  join holdfast.run_steps m on m.run_id = h.run_id and m.step_id = e.step_id
                 where e.next_id = h.id and starts_with(m.name, concat(n.name, '.')))
              -- as flow.result_in_run, which only a mapped step needs: a call per entry costs more than all else
              when 'parent' then (
                select case when o.cursor ? 'mapped' then flow.result_in_run(h.run_id, m.name)
                            else coalesce(o.result, 'null') end  -- guard: parent
                  from holdfast.run_steps m join holdfast.steps o on o.id = m.step_id
                 where m.run_id = h.run_id and m.name = concat(n.scope || '.', w.name)) end as value) v
   group by w.step_id;
end
$_$;


--
-- Name: step_to_change(bigint); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.step_to_change(step_id bigint) RETURNS holdfast.steps
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  step holdfast.steps;
begin
  select s.* into step from holdfast.steps s
   where s.id = step_to_change.step_id and s.machine = 'flow.step'
     and holdfast.matches_any(allowed, s.tenant) for update;
  if step.id is null then
    perform holdfast.refuse_pruned(step_to_change.step_id::text);
    perform holdfast.refuse('RN004', format('there is no step %s of a flow''s task', step_to_change.step_id),
                            'flow.steps lists them', step_to_change.step_id::text);
  end if;
  return step;
end
$$;


--
-- Name: steps_around(holdfast.runs, bigint[]); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.steps_around(task holdfast.runs, settled bigint[]) RETURNS SETOF bigint
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  last constant bigint := (select max(u.id) from unnest(steps_around.settled) u (id));
begin
  if task.live = 0 then
    return;
  end if;
  if task.total <= 300 then
    return query select n.step_id from holdfast.run_steps n where n.run_id = task.id;
    return;
  end if;
  return query
  select u.id from unnest(steps_around.settled) u (id)
  union
  select e.next_id
    from unnest(steps_around.settled) u (id)
   cross join lateral (select d.next_id from holdfast.edges d where d.step_id = u.id order by d.next_id limit 10) e
  union
  (select n.step_id from holdfast.run_steps n
    where n.run_id = task.id and n.step_id < last order by n.step_id desc limit 100)
  union
  (select n.step_id from holdfast.run_steps n
    where n.run_id = task.id and n.step_id > last order by n.step_id limit 100)
  union
  (select n.step_id from holdfast.run_steps n where n.run_id = task.id order by n.step_id desc limit 100);
end
$$;


--
-- Name: take_adjustment(); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.take_adjustment() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  adjustable constant text[] := '{retry_limit,retryable,backoff_request_seconds}';
  odd constant text := (
    select string_agg(n.key, ', ' order by n.key)
      from jsonb_each(to_jsonb(new) - adjustable) n
     where n.value is distinct from to_jsonb(old) -> n.key);
begin
  if odd is not null then
    raise exception using errcode = 'RN005', message = format('%s of flow.steps cannot be updated', odd),
      hint = 'move a step with flow.safe_transition_to, retry it with holdfast.retry, resolve it with '
             'holdfast.resolve, cancel it with holdfast.cancel; only retry_limit, retryable and '
             'backoff_request_seconds can be set';
  end if;
  if new is not distinct from old then
    return new;
  end if;
  perform flow.adjust_step(
    old.step_id,
    case when new.retry_limit is distinct from old.retry_limit then coalesce(
      new.retry_limit, (select p.tries from holdfast.policy_of(null, null, 'flow.step') p)) end,
    case when new.retryable is distinct from old.retryable then coalesce(new.retryable, true) end,
    case when new.backoff_request_seconds is distinct from old.backoff_request_seconds then coalesce(
      new.backoff_request_seconds, extract(epoch from holdfast.backoff('flow.sql', old.attempts))) end);
  return new;
end
$$;


--
-- Name: touched_tasks(text, bigint[]); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.touched_tasks(worker text, step_ids bigint[]) RETURNS TABLE(task_id uuid, name text, namespace text, version text, steps jsonb, moves jsonb)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return query
  with meant as (
    select s.run_id,
           jsonb_object_agg(s.id, jsonb_build_object(
             'name', n.name, 'attempts', s.failures, 'retry_limit', p.tries, 'failed_at', s.failed_at,
             'next_retry_at', case when s.state = 'error' then coalesce(s.due_at, s.parked_due_at) end)) as steps
      from holdfast.steps s
      join holdfast.run_steps n on n.run_id = s.run_id and n.step_id = s.id
      left join lateral holdfast.step_policy(s.policy, s.kind, s.machine, s.tenant) p on true
     where s.id = any (touched_tasks.step_ids) and s.machine = 'flow.step' and holdfast.matches_any(allowed, s.tenant)
     group by s.run_id)
  select r.id, r.name, coalesce(r.input ->> 'namespace', 'default'), coalesce(r.input ->> 'version', '0.1.0'), m.steps,
         flow.moves_by(r, touched_tasks.worker)
    from meant m
    join holdfast.runs r on r.id = m.run_id
   order by r.id;
end
$$;


--
-- Name: waiting_for(bigint); Type: FUNCTION; Schema: flow; Owner: -
--

CREATE FUNCTION flow.waiting_for(step_id bigint) RETURNS TABLE(id bigint, is_afresh boolean)
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 WITH RECURSIVE reached(id, is_afresh) AS (
          SELECT waiting_for.step_id AS step_id,
             true AS "?column?"
         UNION
          SELECT e.next_id,
             (NOT (starts_with(p.name, (c.name || '['::text)) OR starts_with(p.name, (c.name || '.'::text))))
            FROM ((((reached r_1
              JOIN holdfast.edges e ON ((e.step_id = r_1.id)))
              JOIN holdfast.steps s ON ((s.id = e.next_id)))
              JOIN holdfast.run_steps p ON (((p.run_id = s.run_id) AND (p.step_id = r_1.id))))
              JOIN holdfast.run_steps c ON (((c.run_id = s.run_id) AND (c.step_id = e.next_id))))
         )
  SELECT r.id,
     bool_or(r.is_afresh) AS bool_or
    FROM reached r
   GROUP BY r.id;
END;


--
-- Name: act_on(text, text, text, jsonb, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.act_on(id text, event text, reason text, result jsonb DEFAULT NULL::jsonb, actor text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  step holdfast.steps;
  run holdfast.runs;
  answer text;
begin
  perform holdfast.check_reason(act_on.reason);
  perform holdfast.check_size('a result', act_on.result);
  perform holdfast.check_name('actor', act_on.actor);
  if act_on.id ~ '^[0-9]{1,18}$' then
    select s.* into step from holdfast.steps s
     where s.id = act_on.id::bigint
       and holdfast.matches_any(allowed, s.tenant)  -- guard: step-tenant
       for update;
  elsif act_on.id ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    select r.* into run from holdfast.runs r
     where r.id = act_on.id::uuid
       and holdfast.matches_any(allowed, r.tenant)  -- guard: run-tenant
    ;
  end if;
  perform holdfast.set_actor('user', coalesce(act_on.actor, session_user), act_on.reason);
  if step.run_id is not null and not exists (select from holdfast.runs r where r.id = step.run_id) then
    step := null;  -- what is left of a run that retention removes
  end if;
  if step.id is not null then
    answer := holdfast.act_on_step(step, act_on.event, act_on.result);
  elsif run.id is not null and act_on.result is not null then
    perform holdfast.refuse('RN005', 'a run has no result of its own', 'resolve the step whose result is missing',
                            'result');
  elsif run.id is not null then
    answer := holdfast.act_on_run(run, act_on.event);
  else
    perform holdfast.refuse_pruned(act_on.id);
    perform holdfast.refuse('RN004', format('there is no run or step %s', act_on.id),
                            'a step is a number, a run a UUID', act_on.id);
  end if;
  perform holdfast.set_actor();
  return answer;
end
$_$;


--
-- Name: act_on_run(holdfast.runs, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.act_on_run(run holdfast.runs, event text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  present holdfast.runs;
begin
  -- Steps are locked before runs: this waits for settles in progress.
  perform from holdfast.steps s
    where s.lease_until is not null and s.run_id = run.id order by s.id for update;
  select r.* into present from holdfast.runs r where r.id = run.id for update;
  if present.id is null then  -- retention was faster
    perform holdfast.refuse_pruned(run.id::text);
    perform holdfast.refuse('RN004', format('there is no run %s', run.id), 'find the id with `holdfast runs list`',
                            run.id::text);
  end if;
  run := present;
  if holdfast.move_runs(array[run.id], act_on_run.event, clock) = 0 then
    perform holdfast.refuse(
      'RN010', format('run %s is %s and cannot be %s', run.id, run.state, act_on_run.event),
      coalesce('possible now: ' || (select string_agg(m.event, ', ' order by m.event) from holdfast.machine_moves m
                                     where m.machine = run.machine and m.from_state = run.state
                                       and m.event in ('cancelled', 'reopened', 'resolved')
                                       and (m.event <> 'reopened' or run.failed > 0)),
               format('%s is final for a %s', run.state, run.machine)),
      run.id::text);
  end if;
  if act_on_run.event = 'reopened' and run.failed = 0 then
    perform holdfast.refuse(
      'RN010', format('run %s has no failed step to retry%s', run.id, holdfast.cancelled_names(run)),
      'do a cancelled step again in a new run (of a flow: retry_from), or resolve the run', run.id::text);
  end if;
  if act_on_run.event in ('cancelled', 'reopened') then
    update holdfast.runs r set moving = act_on_run.event, moved_until = 0 where r.id = run.id;
    perform holdfast.move_run_steps(run.id, 10000);
  end if;
  return (select r.state from holdfast.runs r where r.id = run.id);
end
$$;


--
-- Name: act_on_step(holdfast.steps, text, jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.act_on_step(step holdfast.steps, event text, result jsonb DEFAULT NULL::jsonb) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  moved holdfast.settled_step;
begin
  if act_on_step.event = 'resolved' and act_on_step.result is null
     and not exists (select from holdfast.machine_moves m
                      where m.machine = step.machine and m.event = act_on_step.event)
     and holdfast.mark_resolved(step, nullif(current_setting('holdfast.reason', true), ''),
                                current_setting('holdfast.actor', true)) then
    return step.state;
  end if;
  if not exists (select from holdfast.machine_moves m
                  where m.machine = step.machine and m.from_state = step.state and m.event = act_on_step.event) then
    perform holdfast.refuse(
      'RN010', format('step %s is %s and cannot be %s', step.id, step.state, act_on_step.event),
      coalesce('possible now: ' || (select string_agg(m.event, ', ' order by m.event) from holdfast.machine_moves m
                                     where m.machine = step.machine and m.from_state = step.state
                                       and m.event in ('cancelled', 'reopened', 'resolved')),
               format('%s is final for a %s', step.state, step.machine)),
      step.id::text);
  end if;
  if step.run_id is not null and act_on_step.event in ('reopened', 'resolved') then
    perform holdfast.reopen_run(step.run_id, clock);
  end if;
  select m.* into moved
    from holdfast.move_steps(array[
           (step.id, step.lease_id, act_on_step.event, clock, act_on_step.result, null, null)::holdfast.step_move]) m;
  if act_on_step.event = 'reopened' then
    perform holdfast.wake(array[step.queue]);
  end if;
  return moved.state;
end
$$;


--
-- Name: add_awaited(bigint, bigint, jsonb, text[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.add_awaited(step_id bigint, lease_id bigint, steps jsonb, awaited text[] DEFAULT NULL::text[]) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  step holdfast.steps;
  ids bigint[];
begin
  select s.* into step from holdfast.steps s where s.id = add_awaited.step_id
    and s.lease_id = add_awaited.lease_id for update;
  if step.id is null or step.run_id is null or not holdfast.matches_any(allowed, step.tenant) then
    perform holdfast.refuse('RN002', format('step %s is not held under lease %s',
                                            add_awaited.step_id, add_awaited.lease_id),
                            'stop working on it: another worker has it, or it is over');
  end if;
  perform holdfast.check_open_run(step.run_id, step.tenant);
  perform holdfast.set_actor('worker', step.lease_owner);
  ids := holdfast.add_steps(step.run_id, step.machine, add_awaited.steps);
  if add_awaited.awaited is not null then
    ids := array(select n.step_id from holdfast.run_steps n
                  where n.run_id = step.run_id and n.step_id = any (ids) and n.name = any (add_awaited.awaited));
  end if;
  update holdfast.steps s
     set waits = s.waits + cardinality(ids)  -- guard: waits
   where s.id = step.id;
  insert into holdfast.edges select u.id, step.id from unnest(ids) u (id);
  perform holdfast.set_actor();
  return cardinality(ids);
end
$$;


--
-- Name: add_steps(uuid, text, jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.add_steps(run_id uuid, step_machine text, steps jsonb) RETURNS bigint[]
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  begins constant text := holdfast.initial_state(add_steps.step_machine, 'step');
  outside text[];
  outside_ids bigint[];
  ids bigint[];
  parents bigint[];
  children bigint[];
begin
  perform holdfast.check_plan(add_steps.run_id, add_steps.steps);
  outside := holdfast.outside_names(add_steps.steps);
  outside_ids := array(  -- by name, one by one: a join may read the whole run
    select (select n.step_id from holdfast.run_steps n where n.run_id = add_steps.run_id and n.name = u.name)
      from unnest(outside) u (name));
  ids := array(select nextval('holdfast.step_ids') from generate_series(1, jsonb_array_length(add_steps.steps)));
  -- Wait for parents that are being settled: that settle would not see the new edge.
  perform from holdfast.steps s where s.id = any (outside_ids) order by s.id for share;
  with planned as (
    select ids[p.no] as id, p.plan, p.plan ->> 'name' as name
      from jsonb_array_elements(add_steps.steps) with ordinality p (plan, no)),
  known as (
    select p.id, p.name, false as is_done from planned p
    union all
    select s.id, u.name, holdfast.is_success(t.outcome) and s.finished_at is not null
      from unnest(outside, outside_ids) u (name, id)
     cross join lateral (select h.* from holdfast.steps h where h.id = u.id offset 0) s
      join holdfast.machine_states t on t.machine = s.machine and t.state = s.state)
  select array_agg(k.id order by k.id, p.id), array_agg(p.id order by k.id, p.id)
    into parents, children
    from planned p, lateral (
           select distinct n.name from jsonb_array_elements_text(coalesce(nullif(p.plan -> 'after',
             'null'), '[]')) n (name)) a
    join known k on k.name = a.name and not k.is_done;
  insert into holdfast.steps (id, run_id, machine, state, kind, queue, tenant, policy, priority, waits,
                              due_at, created_at, input, limits, weight)
  select u.id, r.id, add_steps.step_machine, t.state, u.plan ->> 'kind',
         coalesce(u.plan ->> 'queue', k.queue, 'default'), r.tenant,
         coalesce((select p.policy from holdfast.policies p
                    where p.policy = holdfast.policy_name(u.plan ->> 'policy', r.tenant)),
                  u.plan ->> 'policy', k.policy),
         coalesce((u.plan ->> 'priority')::smallint, 0), coalesce(w.waits, 0),
         case when t.phase = 'open' and w.waits is null then coalesce((u.plan ->> 'due_at')::timestamptz, clock) end,
         clock, coalesce(u.plan -> 'input', '{}'),
         case when u.plan ? 'limits' or d.limits is not null
              then holdfast.limits_for(holdfast.planned_limits(u.plan), d.limits, u.plan -> 'input') end,
         case when u.plan ? 'weight' or d.weight is not null
              then holdfast.weight_for((u.plan ->> 'weight')::numeric, d.weight, d.call_weight, u.plan -> 'input') end
    from (select ids[p.no] as id, p.plan from jsonb_array_elements(add_steps.steps) with ordinality p (plan, no)) u
    join holdfast.runs r on r.id = add_steps.run_id
    join holdfast.machine_states t on t.machine = add_steps.step_machine and t.state = begins
    left join lateral holdfast.kinds_of(r.tenant) k on k.kind = u.plan ->> 'kind'
    left join lateral (
      select o.limits, o.weight, o.call_weight from holdfast.kinds o
       where o.kind = u.plan ->> 'kind' and o.tenant in (r.tenant, '*') order by o.tenant = '*' limit 1) d on true
    left join (select e.child, count(*)::int as waits from unnest(children) e (child)
               group by e.child) w on w.child = u.id;
  insert into holdfast.run_steps
  select add_steps.run_id, ids[p.no], p.plan ->> 'name'
    from jsonb_array_elements(add_steps.steps) with ordinality p (plan, no);
  insert into holdfast.edges select * from unnest(parents, children);
  perform holdfast.check_charges(ids);
  perform holdfast.count_new_steps(add_steps.run_id, ids, clock);
  return ids;
end
$$;


--
-- Name: admit_children(bigint[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.admit_children(parents bigint[], clock timestamp with time zone) RETURNS holdfast.run_delta[]
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  run_ids uuid[];
  queues text[];
  machines text[];
  freed_ids bigint[];
begin
  with freed as (
    update holdfast.steps s
       set waits = s.waits - c.done,  -- guard: waits
           due_at = case when s.waits = c.done  -- guard: parents
                          and s.finished_at is null then admit_children.clock end
      from (select e.next_id, count(*)::int as done
              from unnest(admit_children.parents) p (id)
             cross join lateral (  -- offset 0: one lookup per parent, whatever the statistics say
               select d.next_id from holdfast.edges d where d.step_id = p.id offset 0) e
             group by e.next_id
             order by e.next_id) c
     where s.id = c.next_id
    returning s.id, s.run_id, s.queue, s.due_at, s.machine)
  select array_agg(f.id), array_agg(f.run_id), array_agg(distinct f.queue), array_agg(distinct f.machine)
    into freed_ids, run_ids, queues, machines
    from freed f
   where f.due_at is not null;
  -- A machine may have a state for steps that are not admitted yet; most do not.
  if exists (select from holdfast.machine_moves m where m.machine = any (machines) and m.event = 'queued') then
    update holdfast.steps s
       set state = m.to_state, last_event = 'queued'
      from holdfast.machine_moves m
     where s.id = any (freed_ids) and m.machine = s.machine and m.from_state = s.state and m.event = 'queued';
  end if;
  if queues is not null then
    perform holdfast.wake(queues);
  end if;
  return array(select (r.id, 0, count(*), 0, 0, 0)::holdfast.run_delta from unnest(run_ids) r (id) group by r.id);
end
$$;


--
-- Name: admit_steps(text, integer, bigint[], integer, bigint[], boolean, integer); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.admit_steps(queue text, priority integer, candidates bigint[], wanted integer, pending bigint[], waits boolean, free integer DEFAULT NULL::integer) RETURNS holdfast.admission
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_nestloop TO 'on'
    SET enable_hashjoin TO 'on'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_sort TO 'on'
    SET jit TO 'off'
    AS $$
declare
  under record;
  room record;
  step record;
  answer holdfast.admission;
  state_ids bigint[];
  slots int[];
  purse numeric[];       -- tokens that are left, by limit
  shut boolean[];
  probes bigint[];
  taken int[] := '{}';   -- places among the candidates
  refused int[] := '{}';
  refused_by bigint[] := '{}';
  refused_charges numeric[] := '{}';
  blocker int;
  tight boolean[];       -- by limit: fetch no more than there are free handlers
  is_tight boolean;
  no int;
begin
  select * into under from holdfast.limits_in_force(admit_steps.queue, admit_steps.candidates);
  answer.left_ids := '{}';
  answer.full_ids := '{}';
  answer.refused := 0;
  answer.pending := '{}';
  if under.ords is null then  -- no candidate is under a limit
    answer.ids := admit_steps.candidates[1 : admit_steps.wanted];
    answer.at := holdfast.clock();
    return answer;
  end if;
  if admit_steps.waits then
    state_ids := array(select u.id from unnest(under.limit_ids) u (id) group by u.id);
    perform from holdfast.limit_states t
      where t.id = any (state_ids) order by t.id for update;  -- guard: lock
  end if;
  answer.at := holdfast.clock();  -- under the locks: what is charged later is charged at a later time
  select * into room
    from holdfast.limit_room(admit_steps.queue, admit_steps.priority, admit_steps.candidates, under.ords,
                             under.limit_ids, under.charges, admit_steps.pending, answer.at);
  answer.tight := 0;
  tight := array(select admit_steps.free is not null
                        and coalesce(u.slots < 2 * admit_steps.wanted or u.tokens < 2 * admit_steps.wanted, false)
                   from unnest(room.slots, room.tokens) u (slots, tokens));
  if room.fits and cardinality(admit_steps.candidates) <= admit_steps.wanted
     and (not true = any (tight) or cardinality(admit_steps.candidates) <= admit_steps.free) then
    answer.tight := case when true = any (tight) then cardinality(admit_steps.candidates) else 0 end;
    answer.ids := admit_steps.candidates;
    answer.pending := under.limit_ids;
    purse := room.rests;
  else
    slots := room.slots;
    purse := room.tokens;
    shut := room.is_shut;
    probes := array_fill(null::bigint, array[cardinality(slots)]);
    for step in
      select g.ord::int as ord, coalesce(g.charge, 1) as charge, g.limited_by,
             coalesce(p.places, '{}') as places, coalesce(p.is_away, false) as is_away
        from unnest(admit_steps.candidates, under.charges, under.limited_by)
               with ordinality g (id, charge, limited_by, ord)
        left join (select u.ord, array_agg(distinct s.place::int) filter (where s.place is not null) as places,
                          bool_or(s.place is null) as is_away
                     from unnest(under.ords, under.limit_ids) u (ord, limit_id)
                     left join unnest(room.ids) with ordinality s (id, place) on s.id = u.limit_id
                    group by u.ord) p on p.ord = g.ord
       order by g.ord
    loop
      if step.is_away then  -- another claim has one of its limits: the step stays as it is
        answer.left_ids := answer.left_ids || admit_steps.candidates[step.ord];
        continue;
      end if;
      blocker := null;
      is_tight := false;
      foreach no in array step.places loop
        if shut[no] or slots[no] <= 0 then  -- guard: slots
          blocker := no;
          shut[no] := true;
        elsif room.is_behind[no] and step.limited_by is distinct from room.ids[no] then  -- guard: queue
          blocker := no;
        elsif purse[no] < least(step.charge, room.bursts[no]) then  -- guard: tokens
          blocker := no;
          shut[no] := true;  -- guard: fifo
        end if;
        exit when blocker is not null;
        is_tight := is_tight or tight[no];
      end loop;
      if blocker is not null then
        refused := refused || step.ord;
        refused_by := refused_by || room.ids[blocker];
        refused_charges := refused_charges || step.charge;
      elsif is_tight and answer.tight >= admit_steps.free then  -- guard: free
        answer.left_ids := answer.left_ids || admit_steps.candidates[step.ord];
      elsif cardinality(taken) < admit_steps.wanted then
        answer.tight := answer.tight + is_tight::int;
        taken := taken || step.ord;
        answer.ids := answer.ids || admit_steps.candidates[step.ord];
        foreach no in array step.places loop
          slots[no] := slots[no] - 1;
          purse[no] := purse[no] - step.charge;
          if room.is_half_open[no] then
            shut[no] := true;  -- guard: probe
            probes[no] := admit_steps.candidates[step.ord];
          end if;
        end loop;
      end if;
    end loop;
    answer.pending := array(select u.limit_id
                              from unnest(under.ords, under.limit_ids) u (ord, limit_id)
                              join unnest(taken) t (ord) on t.ord = u.ord);
  end if;
  update holdfast.limit_states t
     set tokens = u.rest, filled_at = answer.at, bucket_at = coalesce(t.bucket_at, answer.at),
         probe_id = coalesce(u.probe, t.probe_id)
    from unnest(room.ids, room.tokens, purse, probes) u (id, before, rest, probe)
   where t.id = u.id and (u.rest < u.before or u.probe is not null);
  if refused <> '{}' then
    update holdfast.steps s
       set due_at = null, parked_due_at = coalesce(s.due_at, s.parked_due_at), parked_for = 'limit',
           limited_by = u.limit_id, charge = u.charge
      from unnest(array(select admit_steps.candidates[r] from unnest(refused) r), refused_by,
                  refused_charges) u (id, limit_id, charge)
     where s.id = u.id and s.limited_by is distinct from u.limit_id;
  end if;
  perform holdfast.refresh_limits(room.ids, answer.at);
  answer.ids := coalesce(answer.ids, '{}');
  answer.refused := cardinality(refused);
  answer.full_ids := array(select u.id from unnest(room.ids, shut) u (id, is_shut) where u.is_shut);
  if cardinality(answer.ids) = cardinality(admit_steps.candidates) and cardinality(under.limit_ids)
     = cardinality(room.ids) * cardinality(admit_steps.candidates) then  -- each is under each: one array for all
    answer.shared := room.ids;
  else
    select jsonb_object_agg(admit_steps.candidates[p.ord], p.holds) into answer.holds
      from (select u.ord, array_agg(u.limit_id)::text as holds
              from unnest(under.ords, under.limit_ids) u (ord, limit_id)
              join (select g.ord::int as ord
                      from unnest(admit_steps.candidates) with ordinality g (id, ord)
                      join unnest(answer.ids) a (id) on a.id = g.id) t on t.ord = u.ord
             group by u.ord) p;
  end if;
  if under.charges is not null then
    select jsonb_object_agg(c.id, c.charge) into answer.charges
      from unnest(admit_steps.candidates, under.charges) c (id, charge)
      join unnest(answer.ids) a (id) on a.id = c.id
     where c.charge <> 1;
  end if;
  return answer;
end
$$;


--
-- Name: backfill_schedule(text, timestamp with time zone[], text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.backfill_schedule(name text, ticks timestamp with time zone[], reason text DEFAULT NULL::text, tenant text DEFAULT 'default'::text, actor text DEFAULT NULL::text) RETURNS TABLE(at timestamp with time zone, ids text[])
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  schedule constant holdfast.schedules := holdfast.schedule_to_change(
    backfill_schedule.name, backfill_schedule.tenant, backfill_schedule.reason, backfill_schedule.actor);
  who constant text := coalesce(backfill_schedule.actor, session_user);
  fired int := 0;
begin
  if cardinality(backfill_schedule.ticks) > 1000 then
    perform holdfast.refuse('RN005', format('a backfill fires at most 1000 ticks, got %s',
                                            cardinality(backfill_schedule.ticks)),
                            'take a shorter time, and then the next', 'ticks');
  end if;
  if exists (select from unnest(backfill_schedule.ticks) t (at) where (t.at + schedule.shift <= clock) is not true) then
    perform holdfast.refuse('RN005', 'a backfill is for ticks of the past', 'end it before now', 'ticks');
  end if;
  for backfill_schedule.at in
    select distinct t.at from unnest(backfill_schedule.ticks) t (at)
     where not exists (select from holdfast.ticks f
                        where f.tenant = schedule.tenant and f.name = schedule.name and f.at = t.at
                          and f.outcome = 'started')  -- guard: backfill
     order by t.at
  loop
    perform holdfast.set_actor('user', who, coalesce(backfill_schedule.reason,
                                                     format('backfill of schedule %s', schedule.name)));
    backfill_schedule.ids := holdfast.start_tick(schedule, clock);
    perform holdfast.set_actor();
    insert into holdfast.ticks as f (tenant, name, at, due_at, fired_at, cause, outcome, face, ids, actor)
    values (schedule.tenant, schedule.name, backfill_schedule.at, backfill_schedule.at + schedule.shift, clock,
            'backfill', 'started', schedule.face, backfill_schedule.ids, who)
    on conflict on constraint ticks_pkey do update
      set fired_at = excluded.fired_at, cause = excluded.cause, outcome = excluded.outcome, face = excluded.face,
          ids = excluded.ids, error = null, actor = excluded.actor;
    fired := fired + 1;
    return next;
  end loop;
  perform holdfast.note_schedule(
    schedule.tenant, schedule.name, 'backfilled', 'user', backfill_schedule.actor, backfill_schedule.reason,
    jsonb_build_object('ticks', fired));
end
$$;


--
-- Name: backlog(text, integer); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.backlog(queue text, most integer) RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  looked bigint := 0;
  found bigint := 0;
  seen bigint;
  own bigint;
begin
  for level in 0 .. 9 loop
    select count(*), count(*) filter (where holdfast.matches_any(allowed, d.tenant)) into seen, own
      from (select s.tenant
              from holdfast.steps s
             where s.queue = backlog.queue and s.priority = level and s.due_at <= clock
             limit backlog.most - looked) d;
    looked := looked + seen;
    found := found + own;
    exit when looked >= backlog.most;
  end loop;
  return found;
end
$$;


--
-- Name: chance(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.chance() RETURNS double precision
    LANGUAGE sql
    BEGIN ATOMIC
 SELECT random() AS random;
END;


--
-- Name: backoff(text, integer, double precision); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.backoff(policy text, failure integer, chance double precision DEFAULT holdfast.chance()) RETURNS interval
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  law holdfast.policies;
  seconds numeric;
  spread numeric;
begin
  select p.* into strict law from holdfast.policies p where p.policy = backoff.policy;
  if backoff.failure <= 0 then
    return '0';
  end if;
  seconds := case
    when backoff.failure <= cardinality(law.waits) then
      extract(epoch from law.waits[backoff.failure])  -- guard: waits
    when law.law = 'power' then trunc(power(backoff.failure::numeric, law.growth))
    -- The exponent is capped: beyond it every growth above 1 exceeds any cap, and numeric would compute for ever.
    else extract(epoch from law.base) * power(law.growth, least(backoff.failure - 1, 100)) end;
  seconds := least(seconds, extract(epoch from least(law.longest, interval '100 years')));
  if law.jitter > 0 and law.jitter_in_seconds and seconds = trunc(seconds) and seconds >= 1 then
    spread := round(seconds * law.jitter);
    seconds := greatest(1, seconds - spread + floor(backoff.chance * (2 * spread + 1)));
  elsif law.jitter > 0 then
    seconds := greatest(case when law.jitter_in_seconds and seconds >= 1 then 1 else 0 end,
                        trunc(seconds * (1 + law.jitter * (2 * backoff.chance::numeric - 1)), 3));
  end if;
  return make_interval(secs => seconds::double precision);
end
$$;


--
-- Name: begin_run(text, text, text, jsonb, jsonb, text, text, uuid, interval); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.begin_run(machine text, name text, step_machine text, steps jsonb, input jsonb, key text, tenant text, of_run uuid, key_for interval DEFAULT NULL::interval) RETURNS uuid
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  run_id constant uuid := holdfast.uuid7();
  hash bytea;
  taken uuid;
begin
  perform holdfast.check_start(begin_run.name, begin_run.input, 0);
  perform holdfast.check_tenant(begin_run.tenant);
  perform holdfast.check_name('key', begin_run.key, 400);
  perform holdfast.check_key_for(begin_run.key, begin_run.key_for);
  -- Locked, so that retention leaves the other run in place.
  perform from holdfast.runs r where r.id = begin_run.of_run and r.tenant = begin_run.tenant for key share;
  if begin_run.of_run is not null and not found then
    perform holdfast.refuse('RN004', format('there is no run %s of tenant %s', begin_run.of_run, begin_run.tenant));
  end if;
  if begin_run.key is not null then
    hash := sha256(convert_to(concat(begin_run.machine, ' ', begin_run.name, ' ', begin_run.input,
                                     begin_run.steps), 'UTF8'));
    taken := holdfast.take_key(begin_run.tenant, begin_run.key, run_id::text, hash, begin_run.key_for)::uuid;
    if taken <> run_id then
      return taken;
    end if;
  end if;
  perform holdfast.make_run(run_id, begin_run.machine, begin_run.name, begin_run.step_machine, begin_run.steps,
                            begin_run.input, begin_run.tenant, begin_run.of_run);
  return run_id;
end
$$;


--
-- Name: retention_sweep; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.retention_sweep (
    is_only boolean DEFAULT true NOT NULL,
    begins_at timestamp with time zone NOT NULL,
    phase text DEFAULT 'steps'::text NOT NULL,
    step_id bigint DEFAULT 0 NOT NULL,
    run_id uuid DEFAULT '00000000-0000-0000-0000-000000000000'::uuid NOT NULL,
    run_left uuid,
    next_at timestamp with time zone,
    began_at timestamp with time zone,
    ended_at timestamp with time zone,
    busy interval DEFAULT '00:00:00'::interval NOT NULL,
    steps bigint DEFAULT 0 NOT NULL,
    runs bigint DEFAULT 0 NOT NULL,
    keys bigint DEFAULT 0 NOT NULL,
    ticks bigint DEFAULT 0 NOT NULL,
    blocked_at timestamp with time zone,
    blocked_month text,
    CONSTRAINT known_sweep_phase CHECK ((phase = ANY (ARRAY['steps'::text, 'runs'::text, 'rest'::text]))),
    CONSTRAINT there_is_one_sweep CHECK (is_only)
);


--
-- Name: begun_sweep(holdfast.retention_sweep, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.begun_sweep(sweep holdfast.retention_sweep, clock timestamp with time zone) RETURNS holdfast.retention_sweep
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  sweep.phase := 'steps';
  sweep.step_id := 0;
  sweep.run_id := '00000000-0000-0000-0000-000000000000';
  sweep.next_at := null;
  sweep.began_at := begun_sweep.clock;
  sweep.busy := '0';
  sweep.steps := 0;
  sweep.runs := 0;
  sweep.keys := 0;
  sweep.ticks := 0;
  return sweep;
end
$$;


--
-- Name: call_moved(text, holdfast.shared_move[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.call_moved(machine text, moves holdfast.shared_move[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_nestloop TO 'on'
    SET enable_hashjoin TO 'on'
    SET enable_mergejoin TO 'on'
    SET enable_seqscan TO 'on'
    SET enable_bitmapscan TO 'on'
    SET enable_sort TO 'on'
    SET plan_cache_mode TO 'auto'
    SET jit TO 'off'
    AS $_$
declare
  actor_kind constant text := coalesce(current_setting('holdfast.actor_kind', true), '');
  actor constant text := coalesce(current_setting('holdfast.actor', true), '');
  reason constant text := coalesce(current_setting('holdfast.reason', true), '');
begin
  execute format('select %s($1)', (select holdfast.face_name(c.moved) from holdfast.machines c
                                    where c.machine = call_moved.machine))
    using call_moved.moves;
  perform holdfast.set_actor(actor_kind, actor, reason);
end
$_$;


--
-- Name: call_prunes(bigint[], uuid[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.call_prunes(step_ids bigint[], run_ids uuid[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
  function text;
begin
  for function in select f.prunes from holdfast.faces f where f.prunes is not null order by f.face loop
    execute format('select %s($1, $2)', holdfast.face_name(function))
      using call_prunes.step_ids, call_prunes.run_ids;
  end loop;
end
$_$;


--
-- Name: cancel(text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.cancel(id text, reason text DEFAULT NULL::text, actor text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  return holdfast.act_on(cancel.id, 'cancelled', cancel.reason, actor => cancel.actor);
end
$$;


--
-- Name: cancel_unreleased(holdfast.step_move[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.cancel_unreleased(moves holdfast.step_move[], clock timestamp with time zone) RETURNS holdfast.settled_step[]
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  actor constant text := current_setting('holdfast.actor', true);
  settled holdfast.settled_step[];
begin
  perform holdfast.set_actor('worker', actor, 'Worker shutdown (the run outlived the grace period)');
  settled := array(select m from holdfast.move_steps(cancel_unreleased.moves, cancel_unreleased.clock) m);
  perform holdfast.set_actor('worker', actor);
  return settled;
end
$$;


--
-- Name: cancelled_names(holdfast.runs); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.cancelled_names(run holdfast.runs) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  return (
    select coalesce('; cancelled: ' || string_agg(c.name, ', ' order by c.id), '')
           || case when count(*) < run.cancelled then format(' and %s more', run.cancelled - count(*)) else '' end
      from (select s.id, coalesce(n.name, s.id::text) as name
              from holdfast.run_steps n
             cross join lateral (  -- offset 0: one by one and by primary key, whatever the statistics say
               select h.id, h.machine, h.state, h.finished_at from holdfast.steps h where h.id = n.step_id offset 0) s
              join holdfast.machine_states t on t.machine = s.machine and t.state = s.state
             where n.run_id = run.id and s.finished_at is not null and t.outcome = 'cancelled'
             limit 5) c);
end
$$;


--
-- Name: catch_up_by_hand(bigint[], uuid[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.catch_up_by_hand(moved bigint[], run_ids uuid[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
begin
  if catch_up_by_hand.run_ids = '{}' then
    return;
  end if;
  perform holdfast.set_actor('system', 'by_hand', format('after a change by %s', session_user));
  perform holdfast.admit_children(
    array(select s.id from holdfast.steps s
            join holdfast.machine_states t on t.machine = s.machine and t.state = s.state
           where s.id = any (catch_up_by_hand.moved) and s.finished_at is not null and t.outcome = 'succeeded'), clock);
  perform holdfast.tally_runs(
    array(select (r.id, c.total - r.total, c.live - r.live, c.succeeded - r.succeeded, c.failed - r.failed,
                  c.cancelled - r.cancelled)::holdfast.run_delta
            from holdfast.runs r, lateral holdfast.count_steps(r.id) c
           where r.id = any (catch_up_by_hand.run_ids)), clock);
  perform holdfast.move_runs(
    array(select r.id from holdfast.runs r
           where r.id = any (catch_up_by_hand.run_ids) and r.live > 0
             and r.finished_at is not null and r.moving is null),
    'reopened', clock);
  perform holdfast.set_actor();
end
$$;


--
-- Name: change_retention(text, text, text, text, text, interval, boolean, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.change_retention(what text, owner text, machine text, queue text, outcome text, keep interval, is_removed boolean, reason text, actor text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  present holdfast.retention_rules;
begin
  perform pg_advisory_xact_lock(hashtextextended('holdfast.retention_rules', 0));  -- one change after the other
  select r.* into present from holdfast.retention_rules r
   where r.what = change_retention.what and r.tenant = change_retention.owner and not r.is_default
     and r.machine is not distinct from change_retention.machine
     and r.queue is not distinct from change_retention.queue
     and r.outcome is not distinct from change_retention.outcome;
  if (change_retention.is_removed and present.what is null)
     or (not change_retention.is_removed and present.what is not null
         and present.keep is not distinct from change_retention.keep) then
    return false;
  end if;
  delete from holdfast.retention_rules r
   where r.what = change_retention.what and r.tenant = change_retention.owner and not r.is_default
     and r.machine is not distinct from change_retention.machine
     and r.queue is not distinct from change_retention.queue
     and r.outcome is not distinct from change_retention.outcome;
  if not change_retention.is_removed then
    insert into holdfast.retention_rules (what, tenant, machine, queue, outcome, keep, set_at)
    values (change_retention.what, change_retention.owner, change_retention.machine, change_retention.queue,
            change_retention.outcome, change_retention.keep, clock);
  end if;
  insert into holdfast.retention_changes (at, what, tenant, machine, queue, outcome, event, keep, kept, actor, login,
                                          reason)
  values (clock, change_retention.what, change_retention.owner, change_retention.machine, change_retention.queue,
          change_retention.outcome, case when change_retention.is_removed then 'removed' else 'set' end,
          case when not change_retention.is_removed then change_retention.keep end, present.keep,
          coalesce(change_retention.actor, session_user),
          case when change_retention.actor <> session_user then session_user end, change_retention.reason);
  update holdfast.retention_sweep w
     set next_at = clock
   where w.next_at > clock
     and w.is_only in (select l.is_only from holdfast.retention_sweep l for update skip locked);
  return true;
end
$$;


--
-- Name: limits; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.limits (
    name text NOT NULL COLLATE pg_catalog."C",
    tenant text NOT NULL,
    concurrency integer,
    rate numeric,
    per interval,
    burst numeric,
    breaker_after integer,
    breaker_for interval,
    breaker_counts text[],
    paused_until timestamp with time zone,
    paused_by text,
    pause_reason text,
    defined_at timestamp with time zone NOT NULL,
    CONSTRAINT breaker_is_whole CHECK ((num_nonnulls(breaker_after, breaker_for, breaker_counts) = ANY (ARRAY[0, 3]))),
    CONSTRAINT breaker_opens CHECK (((breaker_after >= 1) AND (breaker_for > '00:00:00'::interval))),
    CONSTRAINT bucket_fills CHECK (((rate > (0)::numeric) AND (rate < 'Infinity'::numeric) AND (per > '00:00:00'::interval) AND (burst > (0)::numeric) AND (burst < 'Infinity'::numeric))),
    CONSTRAINT bucket_is_whole CHECK ((num_nonnulls(rate, per, burst) = ANY (ARRAY[0, 3]))),
    CONSTRAINT concurrency_is_not_negative CHECK ((concurrency >= 0))
);

ALTER TABLE ONLY holdfast.limits FORCE ROW LEVEL SECURITY;


--
-- Name: change_rule(text, text, holdfast.limits); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.change_rule(name text, tenant text, rule holdfast.limits) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  clock timestamptz;
  ids bigint[];
begin
  perform pg_advisory_xact_lock(hashtextextended('holdfast.limits', 0));  -- guard: rules
  clock := holdfast.clock();
  perform from holdfast.steps s where s.lease_until is not null order by s.id for update;  -- settles come to their end
  ids := array(
    select s.id
      from holdfast.limit_states s
     where s.tenant = change_rule.tenant
       and (s.name = change_rule.name
            or (change_rule.name like '%:*' and holdfast.limit_family(s.name) = change_rule.name))
     order by s.id
       for update);
  -- By the old rule, up to now.
  update holdfast.limit_states s
     set tokens = holdfast.tokens_at(s, r, clock), filled_at = clock
    from holdfast.limit_states o
   cross join lateral holdfast.limit_rule(o.name, o.tenant) r
   where s.id = any (ids) and o.id = s.id and s.tokens is not null and r.rate is not null;
  delete from holdfast.limits r where r.name = change_rule.name and r.tenant = change_rule.tenant;
  if change_rule.rule.name is not null then
    insert into holdfast.limits values (change_rule.rule.*);
  end if;
  update holdfast.limit_states s
     set tokens = case when n.rate is not null then least(s.tokens, n.burst) end,
         filled_at = case when n.rate is not null then s.filled_at end,
         bucket_at = case when n.rate is not null then s.bucket_at end,
         paused_until = case when change_rule.rule.name is not null then s.paused_until end,
         paused_by = case when change_rule.rule.name is not null then s.paused_by end,
         pause_reason = case when change_rule.rule.name is not null then s.pause_reason end,
         failures = case when n.breaker_after is not null then s.failures else 0 end,
         open_until = case when n.breaker_after is not null then s.open_until end,
         open_for = case when n.breaker_after is not null then s.open_for end,
         probe_id = case when n.breaker_after is not null then s.probe_id end
    from holdfast.limit_states o
    left join lateral holdfast.limit_rule(o.name, o.tenant) n on true
   where s.id = any (ids) and o.id = s.id;
  perform holdfast.count_holders(change_rule.name, change_rule.tenant);
  perform holdfast.refresh_limits(ids, clock);
end
$$;


--
-- Name: charge_limit(bigint, bigint, text, numeric); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.charge_limit(step_id bigint, lease_id bigint, name text, weight numeric DEFAULT 1) RETURNS interval
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  clock timestamptz;
  step holdfast.steps;
  limit_ids bigint[];
  opens_at timestamptz;
begin
  perform holdfast.check_limit_name(charge_limit.name, true);
  perform holdfast.check_weight(charge_limit.weight, 0);
  perform pg_advisory_xact_lock_shared(hashtextextended('holdfast.limits', 0));
  select s.* into step from holdfast.steps s
   where s.id = charge_limit.step_id
     and s.lease_id = charge_limit.lease_id  -- guard: lease
     for no key update;
  if step.id is null
     or not holdfast.matches_any(allowed, step.tenant)  -- guard: tenant
  then
    perform holdfast.refuse('RN002', format('step %s is not held under lease %s', charge_limit.step_id,
                                            charge_limit.lease_id),
                            'stop working on it: another worker has it, or it is over');
  end if;
  loop  -- upkeep may remove a state that is full before it is locked
    insert into holdfast.limit_states (name, tenant)
    select charge_limit.name, t.tenant from (values ('*'), (step.tenant)) t (tenant)
     where exists (select from holdfast.limit_rule(charge_limit.name, t.tenant))
       and not exists (select from holdfast.limit_states h where h.name = charge_limit.name and h.tenant = t.tenant)
     order by 2
    on conflict on constraint limit_states_name_tenant_key do nothing;
    limit_ids := array(
      select h.id from holdfast.limit_states h
       where h.name = charge_limit.name and h.tenant in ('*', step.tenant)
       order by h.id
         for update);  -- guard: lock
    exit when not exists (
      select from (values ('*'), (step.tenant)) t (tenant)
       where exists (select from holdfast.limit_rule(charge_limit.name, t.tenant))
         and not exists (select from holdfast.limit_states h
                          where h.name = charge_limit.name and h.tenant = t.tenant and h.id = any (limit_ids)));
  end loop;
  clock := holdfast.clock();
  select max(greatest(h.paused_until, r.paused_until, case when h.open_until > clock then h.open_until end,
                      holdfast.tokens_suffice_at(h, r, charge_limit.weight, clock)))
    into opens_at
    from holdfast.limit_states h
    left join lateral holdfast.limit_rule(h.name, h.tenant) r on true
   where h.id = any (limit_ids);
  if opens_at > clock then  -- guard: tokens
    return least(opens_at - clock, interval '1 day');
  end if;
  update holdfast.limit_states h
     set tokens = holdfast.tokens_at(h, r, clock) - charge_limit.weight,
         filled_at = clock, bucket_at = coalesce(h.bucket_at, clock)
    from holdfast.limit_states o
   cross join lateral holdfast.limit_rule(o.name, o.tenant) r
   where h.id = any (limit_ids) and o.id = h.id and r.rate is not null;
  perform holdfast.refresh_limits(limit_ids, clock);
  return null;
end
$$;


--
-- Name: check_about(jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_about(about jsonb) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if jsonb_typeof(check_about.about) <> 'object' then
    perform holdfast.refuse('RN005', 'about must be an object', '{"state": "polling", "host": "a"}');
  end if;
  perform holdfast.check_size('about', check_about.about);
end
$$;


--
-- Name: check_all_tenants(text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_all_tenants(what text) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if holdfast.allowed_tenants() is not null then
    perform holdfast.refuse('RN009', format('%s requires a login for all tenants, but %s is limited to some',
                                            check_all_tenants.what, session_user),
                            'an owner of the database can add tenant * to holdfast.role_tenants; the setting '
                            'holdfast.tenants narrows a transaction');
  end if;
end
$$;


--
-- Name: check_by_hand(text, text, text, text, text, text, boolean, boolean); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_by_hand(subject text, machine text, id text, was_machine text, from_state text, to_state text, has_lease boolean, has_ended boolean) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  phase constant text := (select t.phase from holdfast.machine_states t
                           where t.machine = check_by_hand.machine and t.state = check_by_hand.to_state);
begin
  if check_by_hand.machine <> check_by_hand.was_machine or phase is null
     or (check_by_hand.from_state <> check_by_hand.to_state
         and not exists (select from holdfast.machine_moves m  -- guard: move
                          where m.machine = check_by_hand.machine and m.from_state = check_by_hand.from_state
                            and m.to_state = check_by_hand.to_state)) then
    perform holdfast.refuse_move(check_by_hand.machine, check_by_hand.from_state, 'by_hand',
                                 check_by_hand.to_state, 'user',
                                 check_by_hand.id);
  end if;
  if (check_by_hand.subject = 'step' and (phase = 'held') <> check_by_hand.has_lease)  -- guard: lease
     or (phase = 'over' and not check_by_hand.has_ended)  -- guard: end
     or (phase in ('shut', 'open', 'held') and check_by_hand.has_ended) then
    perform holdfast.refuse(
      'RN001', format('%s %s cannot be %s with these columns', check_by_hand.machine, check_by_hand.id,
                      check_by_hand.to_state),
      'set lease_id, lease_owner and lease_until if it is held, finished_at if it is over, otherwise neither');
  end if;
end
$$;


--
-- Name: check_charge(text[], numeric, text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_charge(limits text[], weight numeric, queue text, kind text, tenant text) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  charge constant numeric := coalesce(check_charge.weight, 1) + coalesce((
    select k.call_weight from holdfast.kinds k
     where k.kind = check_charge.kind and k.tenant in (check_charge.tenant, '*') order by k.tenant = '*' limit 1), 0);
  small record;
begin
  select n.name, r.burst into small
    from unnest(check_charge.limits || array['queue:' || check_charge.queue, 'kind:' || check_charge.kind,
                                             'tenant:' || check_charge.tenant]) n (name)
   cross join lateral (values (check_charge.tenant), ('*')) t (tenant)
   cross join lateral holdfast.limit_rule(n.name, t.tenant) r
   where r.burst < charge
   order by r.burst
   limit 1;
  if found then
    perform holdfast.refuse(
      'RN005', format('the step takes %s from limit %s, whose bucket holds %s', trim_scale(charge), small.name,
                      trim_scale(small.burst)),
      'give the limit a larger burst, or the step a smaller weight', 'weight');
  end if;
end
$$;


--
-- Name: check_charges(bigint[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_charges(ids bigint[]) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if not exists (select from holdfast.limits) then
    return;
  end if;
  perform holdfast.check_charge(g.limits, g.weight, g.queue, g.kind, g.tenant)
     from (select s.limits, max(coalesce(s.weight, 1)) as weight, s.queue, s.kind, s.tenant
             from holdfast.steps s
            where s.id = any (check_charges.ids)
            group by s.limits, s.queue, s.kind, s.tenant) g;
end
$$;


--
-- Name: check_claim(text, integer, interval); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_claim(worker text, batch integer, lease interval) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if holdfast.is_name(check_claim.worker) is not true then
    perform holdfast.check_name('worker', coalesce(check_claim.worker, ''));
  end if;
  if check_claim.batch is null or check_claim.batch not between 1 and 10000 then
    perform holdfast.refuse('RN005', format('batch must be 1 to 10000, got %s', check_claim.batch),
                            '500 is fast', 'batch');
  end if;
  if check_claim.lease <= '0' then
    perform holdfast.refuse('RN005', format('lease must be longer than 0, got %s', check_claim.lease),
                            'use a second or more', 'lease');
  end if;
  if check_claim.lease > '365 days' then
    perform holdfast.refuse('RN005', format('lease must be at most 365 days, got %s', check_claim.lease),
                            'use minutes and renew it: steps of a dead worker wait until its lease ends', 'lease');
  end if;
end
$$;


--
-- Name: check_cron(text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_cron(cron text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
  names constant text[] := array['minute', 'hour', 'day-of-month', 'month', 'day-of-week'];
  least_values constant int[] := array[0, 0, 1, 1, 0];
  most_values constant int[] := array[59, 23, 31, 12, 7];
  months constant text[] := '{JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC}';
  days constant text[] := '{SUN,MON,TUE,WED,THU,FRI,SAT}';
  fields constant text[] := regexp_split_to_array(upper(check_cron.cron), ' ');
  place int;
  part text;
  bounds int[];
  step int;
begin
  if check_cron.cron is null then
    return;
  end if;
  if cardinality(fields) <> 5 or length(check_cron.cron) > 200 then
    perform holdfast.refuse('RN005', format('a cron has five fields, got %s: %s', cardinality(fields),
                                            to_json(left(check_cron.cron, 50))),
                            'minute, hour, day of month, month, day of week: 0 2 * * *; for seconds use every', 'cron');
  end if;
  for place in 1 .. 5 loop
    foreach part in array string_to_array(fields[place], ',') loop
      step := case when part ~ '/[0-9]{1,4}$' then split_part(part, '/', 2)::int end;
      part := case when step is null then part else split_part(part, '/', 1) end;
      if place = 4 then
        part := (select coalesce(string_agg(coalesce(array_position(months, w.word)::text, w.word), '-'
                                            order by w.n), '')
                   from regexp_split_to_table(part, '-') with ordinality w (word, n));
      elsif place = 5 then
        part := (select coalesce(string_agg(coalesce((array_position(days, w.word) - 1)::text, w.word), '-'
                                            order by w.n), '')
                   from regexp_split_to_table(regexp_replace(part, '#[1-5]$|(?<=[0-9])L$', ''), '-')
                        with ordinality w (word, n));
      end if;
      bounds := case when part ~ '^[0-9]{1,2}(-[0-9]{1,2})?$' then regexp_split_to_array(part, '-')::int[] end;
      if not coalesce(
           step is distinct from 0
           and (part = '*' or (place = 3 and part in ('L', 'LW'))
                or (bounds[1] >= least_values[place] and bounds[cardinality(bounds)] <= most_values[place]
                    and bounds[1] <= bounds[cardinality(bounds)])), false) then
        perform holdfast.refuse('RN005', format('the %s of a cron must be %s to %s, got %s', names[place],
                                                least_values[place], most_values[place], to_json(fields[place])),
                                'such as 5, 1-5, */15 or 1,15', 'cron');
      end if;
    end loop;
  end loop;
end
$_$;


--
-- Name: check_due(timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_due(due_at timestamp with time zone) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if not holdfast.is_in_reach(check_due.due_at) then
    perform holdfast.refuse('RN005', format('due_at must be in the years 1900 to 9998, got %s', check_due.due_at),
                            'leave it out to make the step due now', 'due_at');
  end if;
end
$$;


--
-- Name: check_key_for(text, interval); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_key_for(key text, key_for interval) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if check_key_for.key_for is null then
    return;
  end if;
  if check_key_for.key is null then
    perform holdfast.refuse('RN005', format('key_for is %s, but there is no key', check_key_for.key_for),
                            'pass a key, or leave key_for out', 'key_for');
  end if;
  if check_key_for.key_for <= interval '0' or check_key_for.key_for > interval '1000 years' then
    perform holdfast.refuse('RN005', format('key_for must be above 0 and at most 1000 years, got %s',
                                            check_key_for.key_for),
                            'leave it out to keep the key forever', 'key_for');
  end if;
end
$$;


--
-- Name: check_limit_name(text, boolean); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_limit_name(name text, is_one boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform holdfast.check_name('limit', coalesce(check_limit_name.name, ''));
  if strpos(check_limit_name.name, '*') > 0
     and (check_limit_name.is_one or check_limit_name.name is distinct from holdfast.limit_family(check_limit_name.name)
          or check_limit_name.name like ':%') then
    perform holdfast.refuse(
      'RN005', format('limit must be one name, such as shop:acme, got %s', check_limit_name.name),
      case when check_limit_name.is_one then 'name the value, not the family'
           else 'a family is a word, a colon and a star: shop:*' end, 'limit');
  end if;
end
$$;


--
-- Name: check_limit_names(text[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_limit_names(names text[]) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  name text;
begin
  if cardinality(check_limit_names.names) > 3 then
    perform holdfast.refuse(
      'RN005', format('a step names up to three limits, got %s: %s', cardinality(check_limit_names.names),
                      left(array_to_string(check_limit_names.names, ', '), 200)),
      'limits of its queue, kind and tenant apply without being named', 'limits');
  end if;
  foreach name in array check_limit_names.names loop
    perform holdfast.check_limit_name(name, true);
    if name ~ '^(queue|kind|tenant):' then
      perform holdfast.refuse('RN005', format('limit %s applies by itself and is not named', name),
                              'leave it out', 'limits');
    end if;
    if cardinality(array_positions(check_limit_names.names, name)) > 1 then
      perform holdfast.refuse('RN005', format('a step names limit %s twice', name), 'name it once', 'limits');
    end if;
  end loop;
end
$$;


--
-- Name: check_name(text, text, integer); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_name(what text, name text, longest integer DEFAULT 200) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if check_name.name = '*' then
    perform holdfast.refuse('RN005', format('%s must be one name, got *, which stands for all', check_name.what),
                            format('use 1 to %s characters other than a single *', check_name.longest),
                            check_name.what);
  end if;
  if not holdfast.is_name(check_name.name, check_name.longest) then
    perform holdfast.refuse(
      'RN005', format('%s must have 1 to %s characters and no control characters, got %s characters: %s',
                      check_name.what, check_name.longest, length(check_name.name), to_json(left(check_name.name, 50))),
      case when length(check_name.name) > check_name.longest
           then format('use %s characters or fewer, such as a digest of it', check_name.longest)
           when check_name.name = '' then format('use 1 to %s characters', check_name.longest)
           else 'leave out line breaks, tabs and other control characters' end, check_name.what);
  end if;
end
$$;


--
-- Name: check_names(text, text[], integer); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_names(what text, names text[], longest integer DEFAULT 200) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  odd constant text := (
    select u.name from unnest(check_names.names) u (name)
      where not holdfast.is_name(u.name, check_names.longest) limit 1);
begin
  perform holdfast.check_name(check_names.what, odd, check_names.longest);
end
$$;


--
-- Name: check_new_edges(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_new_edges() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  is_by_hand constant boolean := coalesce(current_setting('holdfast.actor_kind', true), '') = '';
  stray bigint;
  turn record;
  found_at bigint;
begin
  select min(n.next_id) filter (where a.run_id is distinct from b.run_id or b.run_id is null) into stray
    from n
    left join holdfast.steps a on a.id = n.step_id
    left join holdfast.steps b on b.id = n.next_id;
  if stray is not null then
    perform holdfast.refuse('RN005', format('step %s would wait for a step that is not in its run', stray),
                            'an edge joins two steps of one run');
  end if;
  for turn in
    with recursive later (id) as (
      select n.next_id from n where is_by_hand
      union
      select e.next_id from later l join holdfast.edges e on e.step_id = l.id
    ),
    turns as (
      select n.step_id, n.next_id from n where n.step_id > n.next_id
      union
      select d.step_id, d.next_id
        from later l join holdfast.edges d on d.next_id = l.id and d.step_id > l.id
       where d.step_id in (select c.id from later c)
    )
    select t.next_id as begins, array_agg(t.step_id) as ends from turns t group by t.next_id
  loop
    with recursive reached (id) as (
      select turn.begins
      union
      select e.next_id from reached r join holdfast.edges e on e.step_id = r.id
    )
    select r.id into found_at from (select x.id from reached x intersect select unnest(turn.ends)) r limit 1;
    if found_at is not null then
      perform holdfast.refuse('RN006', format('steps %s and %s would wait for each other', turn.begins, found_at),
                              'remove one of the edges between them');
    end if;
  end loop;
  return null;
end
$$;


--
-- Name: check_new_steps(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_new_steps() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_hashjoin TO 'on'
    SET enable_seqscan TO 'on'
    SET enable_nestloop TO 'off'
    SET jit TO 'off'
    AS $$
declare
  seen record;
begin
  select count(*) filter (where not o.is_sound) as odd, min(n.machine) filter (where not o.is_sound) as machine,
         min(n.state) filter (where not o.is_sound) as state,
         bool_or(n.machine = any (array(
           select c.machine from holdfast.machines c where c.moved is not null))) as is_told
    into seen
    from n
    left join holdfast.machine_states s on s.machine = n.machine and s.state = n.state
   cross join lateral (
     select s.is_initial is true  -- guard: initial
            and n.lease_id is null and n.finished_at is null and n.attempt = 0 and n.failures = 0 as is_sound) o;
  if seen.odd > 0 then
    perform holdfast.refuse(
      'RN007', format('%s step cannot begin as %s', seen.machine, seen.state),
      'insert it in an initial state of its machine, without lease, attempt or end');
  end if;
  if seen.is_told then
    perform holdfast.call_moved(
       g.machine, array_agg((g.run_id, 'new', 'created', g.state, g.step_ids)::holdfast.shared_move))
       from (select n.machine, n.run_id, n.state, array_agg(n.id) as step_ids
               from n
              where n.machine in (select c.machine from holdfast.machines c where c.moved is not null)
              group by n.machine, n.run_id, n.state) g
      group by g.machine;
  end if;
  return null;
end
$$;


--
-- Name: check_note(text, text, jsonb, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_note(level text, message text, payload jsonb, key text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if check_note.level is null or check_note.level not in ('debug', 'info', 'warn', 'error') then
    perform holdfast.refuse('RN005', format('level must be debug, info, warn or error, got %s', check_note.level),
                            'use info for progress', 'level');
  end if;
  perform holdfast.check_name('key', check_note.key, 400);
  perform holdfast.check_size('a note''s payload', check_note.payload);
  perform holdfast.check_size('a note''s message', to_jsonb(check_note.message));
end
$$;


--
-- Name: check_open_run(uuid, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_open_run(run_id uuid, tenant text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  run holdfast.runs;
begin
  select r.* into run from holdfast.runs r
   where r.id = check_open_run.run_id and r.tenant = check_open_run.tenant for update;
  if run.id is null then
    perform holdfast.refuse('RN004', format('there is no run %s of tenant %s', check_open_run.run_id,
                                            check_open_run.tenant));
  end if;
  if run.finished_at is not null then
    perform holdfast.refuse('RN010', format('run %s is %s and takes no more steps', run.id,
                                            run.state), 'start another run');
  end if;
end
$$;


--
-- Name: check_outcomes(jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_outcomes(outcomes jsonb) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
  odd jsonb;
begin
  if jsonb_typeof(check_outcomes.outcomes) is distinct from 'array' then
    perform holdfast.refuse('RN005', 'outcomes must be an array of objects',
                            '[{"step_id": 1, "lease_id": 1, "outcome": "done"}]');
  end if;
  select o into odd
    from jsonb_array_elements(check_outcomes.outcomes) o
   where jsonb_typeof(o) <> 'object' or coalesce(o ->> 'step_id', '') !~ '^[0-9]+$'
      or coalesce(o ->> 'lease_id', '') !~ '^[0-9]+$'
      or coalesce(o ->> 'outcome', '') not in ('done', 'retry', 'fail', 'snooze', 'continue', 'release')
      or (coalesce(o -> 'pause', 'null') <> 'null'
          and (o ->> 'outcome' not in ('retry', 'snooze') or jsonb_typeof(o -> 'pause') <> 'string'
               or holdfast.is_name(o ->> 'pause') is not true or strpos(o ->> 'pause', '*') > 0))
   limit 1;
  if odd is not null then
    perform holdfast.refuse('RN005', format('invalid outcome: %s', left(odd::text, 200)),
                            'step_id and lease_id as claimed, outcome one of done, retry, fail, snooze, continue, '
                            'release; pause, on a retry or snooze, names one limit');
  end if;
end
$_$;


--
-- Name: check_parking(text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_parking(parked_for text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform holdfast.check_name('parked_for', coalesce(check_parking.parked_for, ''));
  if holdfast.is_kernels_parking(check_parking.parked_for) then
    perform holdfast.refuse(
      'RN005', format('parked_for must not be %s, which the kernel reserves', check_parking.parked_for),
      'name what the step waits for, such as approval');
  end if;
end
$$;


--
-- Name: check_plan(uuid, jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_plan(run_id uuid, steps jsonb) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  named record;
  odd text;
begin
  if jsonb_typeof(check_plan.steps) is distinct from 'array' then
    perform holdfast.refuse('RN005', 'steps must be an array of objects',
                            '[{"kind": "fetch", "name": "a"}, {"kind": "load", "after": ["a"]}]', 'steps');
  end if;
  perform holdfast.check_start(p ->> 'kind', p -> 'input', coalesce((p ->> 'priority')::int, 0))
     from jsonb_array_elements(check_plan.steps) p
    where holdfast.is_name(p ->> 'kind') is not true or (p ->> 'priority')::int not between 0 and 9
       -- only invalid steps: a call per step would cost as much as the rest
       or pg_column_size(p -> 'input') > 1048576;
  select min(p ->> 'name') filter (where not holdfast.is_name(p ->> 'name', 400)) as name,
         min(p ->> 'queue') filter (where not holdfast.is_name(p ->> 'queue')) as queue,
         min((p ->> 'due_at')::timestamptz) as first_due, max((p ->> 'due_at')::timestamptz) as last_due,
         array_agg(distinct p ->> 'policy') filter (where p ->> 'policy' is not null) as policies
    into named
    from jsonb_array_elements(check_plan.steps) p;
  if num_nonnulls(named.name, named.queue, named.first_due, named.policies) > 0 then
    perform holdfast.check_name('the name of a step', named.name, 400);
    perform holdfast.check_name('queue', named.queue);
    perform holdfast.check_due(named.first_due);
    perform holdfast.check_due(named.last_due);
    perform holdfast.check_policies(named.policies);
  end if;
  select p ->> 'name' into odd from jsonb_array_elements(check_plan.steps) p
   where p ->> 'name' is not null group by p ->> 'name' having count(*) > 1 limit 1;
  select coalesce(odd, min(p ->> 'name')) into odd
    from jsonb_array_elements(check_plan.steps) p
   where exists (select from holdfast.run_steps r where r.run_id = check_plan.run_id)  -- read once: a new run has none
     -- A lookup per name, here and below: a join may read the whole run.
     and (select r.step_id from holdfast.run_steps r where r.run_id = check_plan.run_id
          and r.name = p ->> 'name') is not null;
  if odd is not null then
    perform holdfast.refuse('RN005', format('the run would have two steps named %s', odd),
                            'give each step of a run its own name');
  end if;
  select p ->> 'name' into odd from jsonb_array_elements(check_plan.steps) p
    where p -> 'after' ? (p ->> 'name') limit 1;
  if odd is not null then
    perform holdfast.refuse('RN006', format('step %s would wait for itself', odd), 'take its own name out of `after`');
  end if;
  select coalesce(u.name, 'null') into odd
    from unnest(holdfast.outside_names(check_plan.steps)) u (name)
   where (select r.step_id from holdfast.run_steps r where r.run_id = check_plan.run_id and r.name = u.name) is null
   limit 1;
  if odd is not null then
    perform holdfast.refuse('RN005', format('a step waits for %s, which is not in the plan', odd),
                            'name only steps of the same run');
  end if;
end
$$;


--
-- Name: check_policies(text[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_policies(policies text[]) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  unknown constant text := (
    select min(u.policy)
      from unnest(check_policies.policies) u (policy)
     where not exists (select from holdfast.policies p
                        where (p.policy = u.policy or p.policy = holdfast.policy_name(u.policy, p.tenant))
                          and (p.tenant = '*' or holdfast.matches_any(allowed, p.tenant))));
begin
  if unknown is not null then
    perform holdfast.refuse('RN005', format('there is no policy %s', unknown),
                            'holdfast.policies lists them', 'policy');
  end if;
end
$$;


--
-- Name: check_reason(text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_reason(reason text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if length(check_reason.reason) > 1000 then
    perform holdfast.refuse('RN005', format('reason must have at most 1000 characters, got %s',
                                            length(check_reason.reason)),
                            'shorten it, or link to the details', 'reason');
  end if;
end
$$;


--
-- Name: check_reserved(bigint, bigint); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_reserved(first_id bigint, last_id bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  stray bigint;
begin
  if exists (select from holdfast.reserved_ids r
              where r.login = session_user and r.first_id <= check_reserved.first_id
                and r.last_id >= check_reserved.last_id) then
    return;
  end if;
  select min(g.id) into stray
    from pg_temp.staged_steps g
   where g.id is not null and coalesce(  -- each by index: the last reservation that begins no later
           (select r.last_id from holdfast.reserved_ids r
             where r.login = session_user and r.first_id <= g.id order by r.first_id desc limit 1) < g.id, true);
  if stray is not null then
    perform holdfast.refuse('RN005', format('id %s of a staged step was not reserved by %s', stray, session_user),
                            'take ids from holdfast.reserve_step_ids()');
  end if;
end
$$;


--
-- Name: check_retention(text, text, text, text, interval); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_retention(what text, machine text, queue text, outcome text, keep interval DEFAULT NULL::interval) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  outcomes constant text[] := '{succeeded,failed,cancelled,partial,undone}';
  subject constant text := (select m.subject from holdfast.machines m where m.machine = check_retention.machine);
begin
  if check_retention.what is null or check_retention.what not in ('runs', 'journal', 'ticks') then
    perform holdfast.refuse('RN005', format('what must be runs, journal or ticks, got %s', check_retention.what),
                            'use runs for tasks and runs that are over', 'what');
  end if;
  if check_retention.what <> 'runs'
     and num_nonnulls(check_retention.machine, check_retention.queue, check_retention.outcome) > 0 then
    perform holdfast.refuse('RN005',
                            format('the rule of the %s has no machine, queue or outcome', check_retention.what),
                            'leave them out', 'what');
  end if;
  if check_retention.machine is not null and subject is null then
    perform holdfast.refuse('RN004', format('there is no machine %s', check_retention.machine),
                            'the machines are: ' || (select string_agg(m.machine, ', ' order by m.machine)
                                                       from holdfast.machines m), 'machine');
  end if;
  perform holdfast.check_name('queue', check_retention.queue);
  if subject = 'run' and check_retention.queue is not null then
    perform holdfast.refuse('RN005', format('runs of %s have no queue, got %s', check_retention.machine,
                                            check_retention.queue),
                            'leave the queue out: a run goes whole, whatever queues its steps were in', 'queue');
  end if;
  if check_retention.outcome <> all (outcomes) then
    perform holdfast.refuse('RN005', format('outcome must be one of %s, got %s', array_to_string(outcomes, ', '),
                                            check_retention.outcome), 'use failed', 'outcome');
  end if;
  if least(extract(year from check_retention.keep), extract(month from check_retention.keep),
           extract(day from check_retention.keep), extract(hour from check_retention.keep),
           extract(minute from check_retention.keep), extract(second from check_retention.keep)) < 0
     or check_retention.keep > interval '1000 years' then
    perform holdfast.refuse('RN005', format('keep must be 0 to 1000 years, got %s', check_retention.keep),
                            'use 0 to keep nothing, null to keep it forever', 'keep');
  end if;
  if check_retention.what = 'journal' and check_retention.keep < interval '1 month' then
    perform holdfast.refuse('RN005', format('the journal is kept for a month or longer, got %s', check_retention.keep),
                            'it goes by whole months: use 1 month', 'keep');
  end if;
end
$$;


--
-- Name: check_rule(holdfast.limits); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_rule(rule holdfast.limits) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform holdfast.check_limit_name(rule.name);
  if rule.concurrency < 0 then
    perform holdfast.refuse('RN005', format('concurrency must be 0 or more, got %s', rule.concurrency),
                            '0 admits nothing', 'concurrency');
  end if;
  if (rule.rate > 0 and rule.rate < 'infinity') is false then  -- a NaN is above infinity
    perform holdfast.refuse('RN005', format('rate must be above 0, got %s', rule.rate),
                            'to admit nothing, pause the limit', 'rate');
  end if;
  if rule.rate is not null and rule.per is null then
    perform holdfast.refuse('RN005', format('a rate of %s needs the time that it is per', rule.rate),
                            'give per, such as one second', 'per');
  end if;
  if rule.rate is null and num_nonnulls(rule.per, rule.burst) > 0 then
    perform holdfast.refuse('RN005', 'per and burst go with a rate', 'give a rate, or leave them out', 'rate');
  end if;
  if rule.per not between interval '1 millisecond' and interval '366 days' then
    perform holdfast.refuse('RN005', format('per must be a millisecond to a year, got %s', rule.per),
                            'one second is usual', 'per');
  end if;
  if (rule.burst > 0 and rule.burst < 'infinity') is false then
    perform holdfast.refuse('RN005', format('burst must be above 0, got %s', rule.burst),
                            'leave it out for what comes back in one `per`', 'burst');
  end if;
  if (rule.breaker_after is null) <> (rule.breaker_for is null) then
    perform holdfast.refuse('RN005', 'a breaker needs breaker_after and breaker_for',
                            'such as 6 failures and 60 seconds', 'breaker_after');
  end if;
  if rule.breaker_after < 1 or rule.breaker_for not between interval '1 millisecond' and interval '366 days' then
    perform holdfast.refuse(
      'RN005', format('a breaker opens after 1 failure or more, for a millisecond to a year, got %s and %s',
                      rule.breaker_after, rule.breaker_for), 'such as 6 failures and 60 seconds', 'breaker_after');
  end if;
  if rule.breaker_after is null and rule.breaker_counts is not null then
    perform holdfast.refuse('RN005', 'breaker_counts goes with a breaker', 'give breaker_after and breaker_for',
                            'breaker_counts');
  end if;
  perform holdfast.check_names('breaker_counts', rule.breaker_counts);
end
$$;


--
-- Name: schedules; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.schedules (
    id bigint NOT NULL,
    tenant text NOT NULL,
    name text NOT NULL,
    face text NOT NULL,
    target text NOT NULL,
    input jsonb NOT NULL,
    options jsonb NOT NULL,
    cron text,
    every interval,
    at timestamp with time zone,
    timezone text NOT NULL,
    starts_at timestamp with time zone,
    ends_at timestamp with time zone,
    missed text NOT NULL,
    missed_window interval,
    overlap text NOT NULL,
    spread interval NOT NULL,
    shift interval NOT NULL,
    words text,
    version integer DEFAULT 1 NOT NULL,
    after_at timestamp with time zone NOT NULL,
    upcoming timestamp with time zone[] DEFAULT '{}'::timestamp with time zone[] NOT NULL,
    is_planned boolean DEFAULT false NOT NULL,
    next_at timestamp with time zone,
    wake_at timestamp with time zone,
    last_at timestamp with time zone,
    ended_at timestamp with time zone,
    broken text,
    paused_at timestamp with time zone,
    paused_by text,
    pause_reason text,
    defined_at timestamp with time zone NOT NULL,
    CONSTRAINT every_second_at_most CHECK ((every >= '00:00:01'::interval)),
    CONSTRAINT first_tick_is_next CHECK ((NOT (next_at IS DISTINCT FROM
CASE
    WHEN ((ended_at IS NULL) AND (broken IS NULL)) THEN (upcoming[1] + shift)
    ELSE NULL::timestamp with time zone
END))),
    CONSTRAINT known_missed CHECK ((missed = ANY (ARRAY['skip'::text, 'one'::text, 'all'::text]))),
    CONSTRAINT known_overlap CHECK ((overlap = ANY (ARRAY['allow'::text, 'skip'::text, 'cancel'::text]))),
    CONSTRAINT one_rule CHECK ((num_nonnulls(cron, every, at) = 1)),
    CONSTRAINT shift_is_below_spread CHECK (((shift >= '00:00:00'::interval) AND ((shift < spread) OR (shift = '00:00:00'::interval)))),
    CONSTRAINT sleeps_when_it_cannot_fire CHECK (((wake_at IS NULL) OR (num_nonnulls(ended_at, broken, paused_at) = 0)))
)
WITH (fillfactor='50');

ALTER TABLE ONLY holdfast.schedules FORCE ROW LEVEL SECURITY;


--
-- Name: check_schedule(holdfast.schedules, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_schedule(schedule holdfast.schedules, clock timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  face constant holdfast.faces := (select f from holdfast.faces f where f.face = schedule.face);
begin
  perform holdfast.check_name('target', coalesce(schedule.target, ''));
  perform holdfast.check_size('an input', schedule.input);
  perform holdfast.check_size('options', schedule.options);
  if face.starts is null then
    perform holdfast.refuse(
      'RN005', format('a schedule cannot start anything of the face %s', schedule.face),
      'use one of: ' || (select string_agg(f.face, ', ' order by f.face) from holdfast.faces f
                          where f.starts is not null),
      'face');
  end if;
  if jsonb_typeof(schedule.options) <> 'object' then
    perform holdfast.refuse('RN005', format('options must be an object, got %s', jsonb_typeof(schedule.options)),
                            'such as {"queue": "mail"}', 'options');
  end if;
  if num_nonnulls(schedule.cron, schedule.every, schedule.at) <> 1 then
    perform holdfast.refuse('RN005', format('a schedule needs one of cron, every and at, got %s',
                                            num_nonnulls(schedule.cron, schedule.every, schedule.at)),
                            'such as cron => ''0 2 * * *''', 'cron');
  end if;
  perform holdfast.check_cron(schedule.cron);
  if schedule.every not between interval '1 second' and interval '366 days'
     or extract(month from schedule.every) <> 0 then
    perform holdfast.refuse('RN005', format('every must be a second to 366 days, got %s', schedule.every),
                            'a cron has months: 0 2 1 * *', 'every');
  end if;
  -- Read last: the view reads a file per zone, which takes a tenth of a second.
  if schedule.timezone is distinct from 'UTC'
     and not exists (select from holdfast.schedules s where s.timezone = schedule.timezone)
     and not exists (select from pg_timezone_names z where z.name = schedule.timezone) then
    perform holdfast.refuse('RN005', format('there is no time zone %s', to_json(schedule.timezone)),
                            'use a name of pg_timezone_names, such as Europe/Berlin', 'timezone');
  end if;
  perform holdfast.check_due(schedule.at);
  perform holdfast.check_due(schedule.starts_at);
  perform holdfast.check_due(schedule.ends_at);
  if schedule.ends_at <= check_schedule.clock then
    perform holdfast.refuse('RN005', format('ends_at must be in the future, got %s', schedule.ends_at),
                            'leave it out for a schedule without an end', 'ends_at');
  end if;
  if schedule.at <= check_schedule.clock then
    perform holdfast.refuse('RN005', format('at must be in the future, got %s', schedule.at),
                            'start the work itself instead', 'at');
  end if;
  if schedule.ends_at < coalesce(schedule.starts_at, schedule.at) then
    perform holdfast.refuse('RN005', format('ends_at is before the first tick: %s', schedule.ends_at),
                            'end after the start', 'ends_at');
  end if;
  if schedule.missed is null or schedule.missed not in ('skip', 'one', 'all') then
    perform holdfast.refuse('RN005', format('missed must be skip, one or all, got %s', to_json(schedule.missed)),
                            'one fires the newest of the ticks that nobody fired', 'missed');
  end if;
  if schedule.missed_window not between interval '0' and interval '3660 days' then
    perform holdfast.refuse('RN005', format('missed_window must be 0 to 3660 days, got %s', schedule.missed_window),
                            'leave it out to catch up with ticks of any age', 'missed_window');
  end if;
  if schedule.overlap is null or schedule.overlap not in ('allow', 'skip', 'cancel') then
    perform holdfast.refuse('RN005', format('overlap must be allow, skip or cancel, got %s',
                                            to_json(schedule.overlap)),
                            'skip starts nothing while the work of the previous tick is not over', 'overlap');
  end if;
  if (schedule.overlap <> 'allow' and face.is_open is null)
     or (schedule.overlap = 'cancel' and face.cancels is null) then
    perform holdfast.refuse('RN005', format('the face %s does not tell what is over, or cannot cancel it',
                                            schedule.face),
                            'use overlap allow', 'overlap');
  end if;
  if schedule.spread is null or schedule.spread not between interval '0' and interval '1 day' then
    perform holdfast.refuse('RN005', format('spread must be 0 to a day, got %s', schedule.spread),
                            'such as 60 seconds', 'spread');
  end if;
end
$$;


--
-- Name: check_size(text, jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_size(what text, value jsonb) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if pg_column_size(check_size.value) > 1048576 then
    perform holdfast.refuse('RN011', format('%s must have at most 1048576 bytes, got %s', check_size.what,
                                            pg_column_size(check_size.value)),
                            'store it elsewhere and pass its address', check_size.what);
  end if;
end
$$;


--
-- Name: check_staged(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_staged() RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  seen record;
  stray bigint;
begin
  select max(pg_column_size(g.input)) as largest, max(g.priority) as highest, min(g.priority) as lowest,
         min(g.due_at) as first_due, max(g.due_at) as last_due, min(g.id) as first_id, max(g.id) as last_id,
         min(g.name) filter (where not holdfast.is_name(g.name, 400)) as odd_name,
         min(g.unique_key) filter (where not holdfast.is_name(g.unique_key, 400)) as odd_key
    into seen
    from pg_temp.staged_steps g;
  if seen.largest > 1048576 then
    perform holdfast.refuse('RN011', format('an input must have at most 1048576 bytes, got %s', seen.largest),
                            'store it elsewhere and pass its address');
  end if;
  if seen.highest > 9 or seen.lowest < 0 then
    perform holdfast.refuse('RN005', format('priority must be 0 to 9, got %s',
                                            case when seen.highest > 9 then seen.highest else seen.lowest end),
                            'use 9 for the most urgent');
  end if;
  perform holdfast.check_due(seen.first_due);
  perform holdfast.check_due(seen.last_due);
  perform holdfast.check_name('the name of a step', seen.odd_name, 400);
  perform holdfast.check_name('unique_key', seen.odd_key, 400);
  perform holdfast.check_names('the name of a handler', array(select distinct g.kind from pg_temp.staged_steps g));
  perform holdfast.check_names('queue',
                               array(select distinct g.queue from pg_temp.staged_steps g where g.queue is not null));
  if seen.first_id is not null then
    perform holdfast.check_reserved(seen.first_id, seen.last_id);
  end if;
  perform holdfast.check_policies(array(select distinct g.policy from pg_temp.staged_steps g
                                        where g.policy is not null));
  select min(e.next_id) into stray
    from pg_temp.staged_edges e left join pg_temp.staged_steps g on g.id = e.next_id where g.id is null;
  if stray is not null then
    perform holdfast.refuse('RN005', format('an edge leads to step %s, which is not staged', stray),
                            'stage the step that waits');
  end if;
end
$$;


--
-- Name: check_staging(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_staging() RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  ours int;
begin
  select count(*) into ours
    from pg_class c
   where c.relnamespace = pg_my_temp_schema() and c.relname in ('staged_steps', 'staged_edges')
     and (c.relname = 'staged_edges' or exists (
           -- missing in a table that an older release made
           select from pg_attribute a where a.attrelid = c.oid and a.attname = 'own_id'))
     and c.relkind = 'r' and c.relowner = (select r.oid from pg_roles r where r.rolname = current_user);
  if ours <> 2 then
    perform holdfast.refuse('RN005', 'nothing is staged in this transaction',
                            'call holdfast.stage_steps() first, then COPY');
  end if;
end
$$;


--
-- Name: check_start(text, jsonb, integer); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_start(name text, input jsonb, priority integer) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if holdfast.is_name(check_start.name) and check_start.priority between 0 and 9
     and coalesce(pg_column_size(check_start.input) <= 1048576, true) then
    return;
  end if;
  perform holdfast.check_name('the name of a handler or run', coalesce(check_start.name, ''));
  if check_start.priority is null or check_start.priority not between 0 and 9 then
    perform holdfast.refuse('RN005', format('priority must be 0 to 9, got %s', check_start.priority),
                            'use 9 for the most urgent', 'priority');
  end if;
  perform holdfast.check_size('an input', check_start.input);
end
$$;


--
-- Name: check_tenant(text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_tenant(tenant text) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  if not holdfast.is_name(check_tenant.tenant) then  -- checked here too: a call costs more
    perform holdfast.check_name('tenant', check_tenant.tenant);
  end if;
  if not holdfast.matches_any(allowed, check_tenant.tenant) then  -- guard: tenant
    perform holdfast.refuse('RN009', format('%s may not act for tenant %s', session_user, check_tenant.tenant),
                            'an owner of the database can add it to holdfast.role_tenants; '
                            'the setting holdfast.tenants narrows a transaction');
  end if;
end
$$;


--
-- Name: check_weight(numeric, numeric); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.check_weight(weight numeric, call_weight numeric) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if check_weight.call_weight not between 0 and 1e12 then  -- a NaN is above all numbers
    perform holdfast.refuse('RN005', format('call_weight must be 0 or more, got %s', check_weight.call_weight),
                            'leave it out for 0', 'call_weight');
  end if;
  if check_weight.weight not between 0 and 1e12 then
    perform holdfast.refuse('RN005', format('weight must be 0 or more, got %s', check_weight.weight),
                            'leave it out for 1', 'weight');
  end if;
  if check_weight.weight = 0 and coalesce(check_weight.call_weight, 0) = 0 then
    perform holdfast.refuse('RN005', 'weight must be above 0 where a call has no weight, got 0',
                            'give the kind a call_weight, or leave the weight out for 1', 'weight');
  end if;
end
$$;


--
-- Name: claim_steps(text, text, text[], integer, interval, text[], text, integer); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.claim_steps(worker text, queue text DEFAULT 'default'::text, kinds text[] DEFAULT NULL::text[], batch integer DEFAULT 1, lease interval DEFAULT NULL::interval, tenants text[] DEFAULT NULL::text[], machine text DEFAULT NULL::text, free integer DEFAULT NULL::integer) RETURNS SETOF holdfast.claimed_step
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_sort TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();  -- guard: clock; read once: an index cannot use a volatile call
  serves constant text[] := holdfast.narrow_tenants(claim_steps.tenants);  -- guard: tenant
  leases constant jsonb := (
    select jsonb_object_agg(k.kind, k.lease) from holdfast.kinds k where k.lease is not null and k.tenant = '*');
  has_own constant boolean := exists (select from holdfast.kinds k where k.tenant <> '*');  -- a tenant's own definition
  wanted int := claim_steps.batch;
  top int;
  is_asleep boolean;
  is_limited boolean;
  is_charged boolean := false;  -- some step more or less than 1
  pick holdfast.pick;
  admission holdfast.admission;
  at timestamptz := clock;
  unoccupied int := claim_steps.free;
  claimed int;
  rest int;
begin
  if serves = '{}' then
    return;  -- the login may act for none of these tenants
  end if;
  perform holdfast.check_claim(claim_steps.worker, claim_steps.batch, claim_steps.lease);
  -- A new rule counts what is held: it waits for the claims under way, and those that come after it see it.
  perform pg_advisory_xact_lock_shared(hashtextextended('holdfast.limits', 0));  -- guard: rules
  perform holdfast.set_actor('worker', claim_steps.worker);
  perform holdfast.record_worker(
    claim_steps.worker, claim_steps.queue, claim_steps.kinds, serves, claim_steps.machine, clock);
  select (select case when q.paused_at is null then q.top_priority else -1 end  -- guard: pause
            from holdfast.queues q where q.queue = claim_steps.queue),
         (select w.is_asleep from holdfast.workers w where w.worker = claim_steps.worker
          and w.queue = claim_steps.queue),
         exists (select from holdfast.limits) or exists (select from holdfast.limit_states)
    into top, is_asleep, is_limited;
  for level in reverse coalesce(top, 9) .. 0 loop  -- guard: priority
    if is_limited then
      admission := holdfast.pick_admitted(
        claim_steps.worker, claim_steps.queue, level, claim_steps.kinds, serves, claim_steps.machine, wanted, clock,
        unoccupied);
      unoccupied := unoccupied - admission.tight;
      at := admission.at;
      pick.ids := admission.ids || admission.ended_ids;
      pick.run_ids := case when admission.ended_ids is null then '{}'
                           else array(select s.run_id from holdfast.steps s
                                       where s.id = any (pick.ids) and s.run_id is not null) end;
      is_charged := admission.charges <> '{}';
    else
      pick := holdfast.pick_steps(
        claim_steps.worker, claim_steps.queue, level, claim_steps.kinds, serves, claim_steps.machine, wanted, clock);
    end if;
    continue when pick.ids = '{}';
    wanted := wanted - cardinality(pick.ids);
    if pick.run_ids <> '{}' then
      pick.ids := holdfast.prepare_runs(pick, clock);
    end if;
    rest := cardinality(pick.ids);
    loop
      return query
      update holdfast.steps s
         set state = m.to_state, last_event = 'claimed', due_at = null, attempt = s.attempt + 1, claimed_at = at,
             parked_for = null, parked_due_at = null, limited_by = null,
             holds = case when is_limited
                          then coalesce(admission.shared, (admission.holds ->> s.id::text)::bigint[]) end,
             charge = case when is_charged then (admission.charges ->> s.id::text)::numeric end,
             lease_id = nextval('holdfast.lease_ids'),  -- guard: lease-number
             lease_owner = claim_steps.worker,
             lease_until = at + coalesce(
               claim_steps.lease, case when has_own then holdfast.lease_of(s.kind, s.tenant)
                                       else (leases ->> s.kind)::interval end, interval '300 s')
        from holdfast.machine_moves m
       where s.id = any (pick.ids)  -- not a join: its plan stays linear in the batch
         and s.lease_id is null  -- guard: free
         and m.machine = s.machine
         and m.from_state = s.state  -- guard: state
         and m.event = 'claimed'
      returning s.id, s.run_id, s.kind, s.input, s.attempt, s.lease_id, s.lease_until, s.cursor;
      get diagnostics claimed = row_count;
      rest := rest - claimed;
      if is_asleep and claimed > 0 then
        update holdfast.workers w set is_asleep = false where w.worker = claim_steps.worker
          and w.queue = claim_steps.queue;
        is_asleep := false;
      end if;
      exit when rest = 0;
      if holdfast.reopen_failed(pick.ids) = 0 then
        perform holdfast.park_unmovable_due(pick.ids, 'claimed', clock);
        exit;
      end if;
    end loop;
    exit when wanted <= 0;
  end loop;
  perform holdfast.set_actor();
end
$$;


--
-- Name: clock(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.clock() RETURNS timestamp with time zone
    LANGUAGE sql PARALLEL SAFE
    BEGIN ATOMIC
 SELECT clock_timestamp() AS clock_timestamp;
END;


--
-- Name: close_runs(uuid[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.close_runs(ids uuid[], clock timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
  asked record;
  chosen text;
begin
  for asked in
    select r.id, r.machine, r.state, holdfast.closing_event(r) as event, c.closing
      from holdfast.runs r join holdfast.machines c on c.machine = r.machine
     where r.id = any (close_runs.ids) and c.closing is not null
  loop
    execute format('select %s($1, $2)', holdfast.face_name(asked.closing)) into chosen using asked.id, asked.event;
    if chosen is not null then
      perform holdfast.move_runs(array[asked.id], chosen, close_runs.clock);
    end if;
  end loop;
  for chosen in
    select distinct holdfast.closing_event(r) from holdfast.runs r where r.id = any (close_runs.ids)
  loop
    perform holdfast.move_runs(
      array(select r.id from holdfast.runs r join holdfast.machines c on c.machine = r.machine
             where r.id = any (close_runs.ids) and c.closing is null and holdfast.closing_event(r) = chosen),
      chosen, close_runs.clock);
  end loop;
end
$_$;


--
-- Name: closing_event(holdfast.runs); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.closing_event(run holdfast.runs) RETURNS text
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT
         CASE
             WHEN ((run).total > (((run).succeeded + (run).failed) + (run).cancelled)) THEN 'blocked'::text
             WHEN ((run).succeeded = (run).total) THEN 'all_succeeded'::text
             WHEN ((run).succeeded > 0) THEN 'some_failed'::text
             ELSE 'none_succeeded'::text
         END AS "case";
END;


--
-- Name: copy_cursors(uuid, uuid, bigint[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.copy_cursors(from_run uuid, to_run uuid, except_ids bigint[] DEFAULT '{}'::bigint[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  update holdfast.steps s
     set cursor = o.cursor
    from holdfast.run_steps n, holdfast.run_steps m, holdfast.steps o
   where n.run_id = copy_cursors.to_run and s.id = n.step_id and m.run_id = copy_cursors.from_run and m.name = n.name
     and o.id = m.step_id and o.cursor is not null and o.id <> all (coalesce(copy_cursors.except_ids, '{}'));
end
$$;


--
-- Name: count_holders(text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.count_holders(name text, tenant text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  step_ids bigint[];
  names text[];
begin
  select array_agg(s.id order by s.id, n.name), array_agg(n.name order by s.id, n.name) into step_ids, names
    from holdfast.steps s
   cross join lateral (
     select unnest(s.limits) as name
     union
     select unnest(array['queue:' || s.queue, 'kind:' || s.kind, 'tenant:' || s.tenant])) n
   where s.lease_until is not null
     and (count_holders.tenant = '*' or s.tenant = count_holders.tenant)
     and (n.name = count_holders.name
          or (count_holders.name like '%:*' and holdfast.limit_family(n.name) = count_holders.name));
  insert into holdfast.limit_states (name, tenant)
  select distinct u.name, count_holders.tenant from unnest(names) u (name) order by 1
  on conflict on constraint limit_states_name_tenant_key do nothing;
  perform holdfast.set_actor('system', 'limits');
  update holdfast.steps s
     set holds = coalesce(s.holds, '{}') || array(
           select i from unnest(c.ids) i where i <> all (coalesce(s.holds, '{}')))
    from (select u.step_id, array_agg(t.id order by t.id) as ids
            from unnest(step_ids, names) u (step_id, name)
            join holdfast.limit_states t on t.name = u.name and t.tenant = count_holders.tenant
           group by u.step_id) c
   where s.id = c.step_id and not coalesce(c.ids <@ s.holds, false);
  perform holdfast.set_actor();
end
$$;


--
-- Name: count_limits(holdfast.limit_change[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.count_limits(changes holdfast.limit_change[], clock timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_nestloop TO 'on'
    SET enable_hashjoin TO 'on'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  ids constant bigint[] := array(select distinct c.limit_id from unnest(count_limits.changes) c order by c.limit_id);
begin
  if ids = '{}' then
    return;
  end if;
  perform from holdfast.limit_states s
    where s.id = any (ids) order by s.id for update;
  update holdfast.limit_states s
     set held = s.held + c.held,  -- guard: held
         parked = s.parked + c.parked
    from (select u.limit_id, sum(u.held) as held, sum(u.parked) as parked
            from unnest(count_limits.changes) u group by u.limit_id) c
   where s.id = c.limit_id and (c.held <> 0 or c.parked <> 0);
  if exists (select from unnest(count_limits.changes) c where c.held < 0)
     and exists (select from holdfast.limits r where r.breaker_after is not null) then
    perform holdfast.judge_breakers(count_limits.changes, count_limits.clock);
  end if;
  perform holdfast.refresh_limits(ids, count_limits.clock);
end
$$;


--
-- Name: count_new_steps(uuid, bigint[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.count_new_steps(run_id uuid, ids bigint[], clock timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  queues text[];
  priorities int[];
begin
  select array_agg(q.queue), array_agg(q.priority::int) into queues, priorities
    from (select s.queue, max(s.priority) as priority from holdfast.steps s
           where s.id = any (count_new_steps.ids) group by s.queue) q;
  perform holdfast.remember_queues(queues, priorities);
  perform holdfast.tally_runs(
    array(select (count_new_steps.run_id, count(*)::int, (count(*) filter (where s.due_at is not null))::int, 0,
                  0, 0)::holdfast.run_delta
            from holdfast.steps s where s.id = any (count_new_steps.ids)),
    count_new_steps.clock);
  perform holdfast.wake(queues);
end
$$;


--
-- Name: is_live(holdfast.steps); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.is_live(step holdfast.steps) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT (((step).finished_at IS NULL) AND (((step).due_at IS NOT NULL) OR ((step).lease_id IS NOT NULL) OR ((step).parked_due_at IS NOT NULL)));
END;


--
-- Name: is_success(text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.is_success(outcome text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT (outcome = ANY (ARRAY['succeeded'::text, 'undone'::text]));
END;


--
-- Name: machine_states; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.machine_states (
    machine text NOT NULL,
    state text NOT NULL,
    phase text NOT NULL,
    outcome text,
    is_initial boolean DEFAULT false NOT NULL,
    CONSTRAINT begins_open CHECK (((NOT is_initial) OR (phase = ANY (ARRAY['shut'::text, 'open'::text])))),
    CONSTRAINT known_outcome CHECK ((outcome = ANY (ARRAY['succeeded'::text, 'failed'::text, 'cancelled'::text, 'partial'::text, 'undone'::text]))),
    CONSTRAINT known_phase CHECK ((phase = ANY (ARRAY['shut'::text, 'open'::text, 'held'::text, 'over'::text, 'open_or_over'::text]))),
    CONSTRAINT over_has_an_outcome CHECK (((phase = ANY (ARRAY['over'::text, 'open_or_over'::text])) = (outcome IS NOT NULL)))
);


--
-- Name: count_steps(uuid); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.count_steps(run_id uuid) RETURNS TABLE(total integer, live integer, succeeded integer, failed integer, cancelled integer)
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT (count(*))::integer AS count,
     (count(*) FILTER (WHERE holdfast.is_live(s.*)))::integer AS count,
     (count(*) FILTER (WHERE ((s.finished_at IS NOT NULL) AND holdfast.is_success(t.outcome))))::integer AS count,
     (count(*) FILTER (WHERE ((s.finished_at IS NOT NULL) AND (t.outcome = 'failed'::text))))::integer AS count,
     (count(*) FILTER (WHERE ((s.finished_at IS NOT NULL) AND (t.outcome = 'cancelled'::text))))::integer AS count
    FROM ((holdfast.run_steps r
      JOIN holdfast.steps s ON ((s.id = r.step_id)))
      LEFT JOIN holdfast.machine_states t ON (((t.machine = s.machine) AND (t.state = s.state))))
   WHERE (r.run_id = count_steps.run_id);
END;


--
-- Name: define_kind(text, text, text, interval, interval, text[], text, numeric); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.define_kind(kind text, queue text DEFAULT NULL::text, policy text DEFAULT NULL::text, lease interval DEFAULT NULL::interval, timeout interval DEFAULT NULL::interval, limits text[] DEFAULT NULL::text[], weight text DEFAULT NULL::text, call_weight numeric DEFAULT NULL::numeric) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  tenants constant text[] := holdfast.tenants_to_define(format('kind %s', define_kind.kind));
begin
  perform holdfast.check_start(define_kind.kind, null, 0);
  perform holdfast.check_name('queue', define_kind.queue);
  perform holdfast.check_claim('kind', 1, define_kind.lease);
  perform holdfast.check_claim('kind', 1, define_kind.timeout);
  perform holdfast.check_limit_names(coalesce(define_kind.limits, '{}'));
  perform holdfast.weight_for(null, case when define_kind.weight !~ '\{' then define_kind.weight end,
                              define_kind.call_weight, '{}');
  perform holdfast.check_policies(array_remove(array[define_kind.policy], null));
  insert into holdfast.kinds as k (kind, tenant, policy, lease, timeout, queue, limits, weight, call_weight)
  select define_kind.kind, t.tenant,
         coalesce((select p.policy from holdfast.policies p
                    where p.policy = holdfast.policy_name(define_kind.policy, t.tenant)), define_kind.policy),
         define_kind.lease, define_kind.timeout, define_kind.queue, define_kind.limits, define_kind.weight,
         define_kind.call_weight
    from unnest(tenants) t (tenant)
   order by t.tenant
  on conflict on constraint kinds_pkey do update
    set policy = excluded.policy, lease = excluded.lease, timeout = excluded.timeout, queue = excluded.queue,
        limits = coalesce(excluded.limits, k.limits), weight = coalesce(excluded.weight, k.weight),
        call_weight = coalesce(excluded.call_weight, k.call_weight)
    -- Each worker defines its kinds when it starts; only changes are written.
    where (k.policy, k.lease, k.timeout, k.queue, k.limits, k.weight, k.call_weight) is distinct
      from (excluded.policy, excluded.lease, excluded.timeout, excluded.queue, coalesce(excluded.limits, k.limits),
            coalesce(excluded.weight, k.weight), coalesce(excluded.call_weight, k.call_weight));
exception when foreign_key_violation then
  perform holdfast.refuse('RN005', format('there is no policy %s', define_kind.policy),
                          'holdfast.policies lists them', 'policy');
end
$$;


--
-- Name: define_limit(text, integer, numeric, interval, numeric, integer, interval, text[], text, text, boolean); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.define_limit(name text, concurrency integer DEFAULT NULL::integer, rate numeric DEFAULT NULL::numeric, per interval DEFAULT NULL::interval, burst numeric DEFAULT NULL::numeric, breaker_after integer DEFAULT NULL::integer, breaker_for interval DEFAULT NULL::interval, breaker_counts text[] DEFAULT NULL::text[], tenant text DEFAULT NULL::text, actor text DEFAULT NULL::text, of_app boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '10s'
    AS $$
declare
  tenants constant text[] := holdfast.limit_tenants(define_limit.tenant, format('limit %s', define_limit.name));
  owner text;
  wanted holdfast.limits;
  present holdfast.limits;
  rule jsonb;  -- as limit_changes keeps it
  is_new boolean;
begin
  perform holdfast.check_name('actor', define_limit.actor);
  foreach owner in array tenants loop
    wanted := (define_limit.name, owner, define_limit.concurrency, define_limit.rate, define_limit.per,
               coalesce(define_limit.burst, case when define_limit.rate > 0 then greatest(define_limit.rate, 1) end),
               define_limit.breaker_after, define_limit.breaker_for,
               coalesce(define_limit.breaker_counts, case when define_limit.breaker_after is not null
                                                          then array['RateLimited', 'Unavailable'] end),
               null, null, null, holdfast.clock())::holdfast.limits;
    perform holdfast.check_rule(wanted);
    select r.* into present from holdfast.limits r where r.name = wanted.name and r.tenant = owner;
    wanted.paused_until := present.paused_until;
    wanted.paused_by := present.paused_by;
    wanted.pause_reason := present.pause_reason;
    present.defined_at := wanted.defined_at;
    rule := jsonb_strip_nulls(to_jsonb(wanted)
                              - array['name', 'tenant', 'paused_until', 'paused_by', 'pause_reason', 'defined_at']);
    is_new := (present = wanted) is not true;
    if define_limit.of_app then
      continue when holdfast.is_overruled(define_limit.name, owner, rule);  -- guard: person
      continue when not is_new and holdfast.is_rule_of_app(define_limit.name, owner, rule);
    else
      continue when not is_new;
    end if;
    if is_new then
      perform holdfast.change_rule(define_limit.name, owner, wanted);
    end if;
    insert into holdfast.limit_changes (at, tenant, name, event, actor_kind, actor, login, payload)
    values (wanted.defined_at, owner, define_limit.name, 'defined',
            case when define_limit.of_app then 'worker' else 'user' end, coalesce(define_limit.actor, session_user),
            case when define_limit.actor <> session_user then session_user end, rule);
  end loop;
end
$$;


--
-- Name: define_policy(text, integer, interval[], interval, numeric, interval, numeric, interval, text, boolean, boolean); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.define_policy(policy text, tries integer DEFAULT 3, waits interval[] DEFAULT '{}'::interval[], base interval DEFAULT '00:00:01'::interval, growth numeric DEFAULT 2, longest interval DEFAULT '01:00:00'::interval, jitter numeric DEFAULT 0.1, longest_retry_after interval DEFAULT '01:00:00'::interval, law text DEFAULT 'exponential'::text, jitter_in_seconds boolean DEFAULT false, retryable boolean DEFAULT true) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  tenants constant text[] := holdfast.tenants_to_define(format('policy %s', define_policy.policy));
  taken text;
begin
  perform holdfast.check_name('policy', coalesce(define_policy.policy, ''));
  if define_policy.policy in (select c.policy from holdfast.machines c where c.policy is not null) then
    perform holdfast.refuse('RN005', format('policy %s is a preset and cannot be changed', define_policy.policy),
                            'use a name of your own', 'policy');
  end if;
  if define_policy.growth > 1000 then  -- its powers could overflow and fail a settle
    perform holdfast.refuse('RN005', format('growth of policy %s must be at most 1000, got %s',
                                            define_policy.policy, define_policy.growth),
                            'use 2 to double each wait', 'growth');
  end if;
  select min(p.policy) into taken
    from unnest(tenants) t (tenant)
    join holdfast.policies p on p.policy = holdfast.policy_name(define_policy.policy, t.tenant)
                            and p.tenant <> t.tenant;
  if taken is not null then
    perform holdfast.refuse('RN009', format('policy %s belongs to another tenant', taken), 'use another name');
  end if;
  insert into holdfast.policies as p
    (policy, tenant, tries, waits, base, growth, law, longest, jitter, jitter_in_seconds,
     longest_retry_after, retryable)
  select holdfast.policy_name(define_policy.policy, t.tenant), t.tenant,
         define_policy.tries, define_policy.waits, define_policy.base, define_policy.growth, define_policy.law,
         define_policy.longest, define_policy.jitter, define_policy.jitter_in_seconds,
           define_policy.longest_retry_after,
         coalesce(define_policy.retryable, true)
    from unnest(tenants) t (tenant)
   order by t.tenant
  on conflict on constraint policies_pkey do update
    set tries = excluded.tries, waits = excluded.waits, base = excluded.base,
      growth = excluded.growth, law = excluded.law,
        longest = excluded.longest, jitter = excluded.jitter, jitter_in_seconds = excluded.jitter_in_seconds,
        longest_retry_after = excluded.longest_retry_after, retryable = excluded.retryable
    where p is distinct from excluded;  -- each worker defines its policies when it starts; only changes are written
exception when check_violation then
  perform holdfast.refuse('RN005', format('policy %s is invalid: %s', define_policy.policy, sqlerrm),
                          'use tries from 1, waits from 0, jitter from 0 to 1, law exponential or power');
end
$$;


--
-- Name: define_schedule(text, text, text, jsonb, jsonb, text, interval, timestamp with time zone, text, timestamp with time zone, timestamp with time zone, text, interval, text, interval, text, text, boolean); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.define_schedule(name text, target text, face text DEFAULT 'work'::text, input jsonb DEFAULT '{}'::jsonb, options jsonb DEFAULT '{}'::jsonb, cron text DEFAULT NULL::text, every interval DEFAULT NULL::interval, at timestamp with time zone DEFAULT NULL::timestamp with time zone, timezone text DEFAULT 'UTC'::text, starts_at timestamp with time zone DEFAULT NULL::timestamp with time zone, ends_at timestamp with time zone DEFAULT NULL::timestamp with time zone, missed text DEFAULT 'one'::text, missed_window interval DEFAULT NULL::interval, overlap text DEFAULT 'allow'::text, spread interval DEFAULT '00:00:00'::interval, tenant text DEFAULT 'default'::text, actor text DEFAULT NULL::text, from_code boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  wanted holdfast.schedules;
  present holdfast.schedules;
begin
  perform holdfast.check_name('the name of a schedule', coalesce(define_schedule.name, ''));
  perform holdfast.check_tenant(define_schedule.tenant);  -- guard: tenant
  perform holdfast.check_name('actor', define_schedule.actor);
  perform pg_advisory_xact_lock(hashtextextended(  -- two workers that start together define it one after the other
    format('holdfast.schedule %s %s', define_schedule.tenant, define_schedule.name), 0));
  select s.* into present from holdfast.schedules s
   where s.tenant = define_schedule.tenant and s.name = define_schedule.name
     for update;
  wanted := present;
  wanted.tenant := define_schedule.tenant;
  wanted.name := define_schedule.name;
  wanted.face := define_schedule.face;
  wanted.target := define_schedule.target;
  wanted.input := coalesce(define_schedule.input, '{}');
  wanted.options := coalesce(define_schedule.options, '{}');
  wanted.cron := regexp_replace(btrim(define_schedule.cron), '\s+', ' ', 'g');
  wanted.every := define_schedule.every;
  wanted.at := define_schedule.at;
  wanted.timezone := define_schedule.timezone;
  wanted.starts_at := define_schedule.starts_at;
  wanted.ends_at := define_schedule.ends_at;
  wanted.missed := define_schedule.missed;
  wanted.missed_window := define_schedule.missed_window;
  wanted.overlap := define_schedule.overlap;
  wanted.spread := define_schedule.spread;
  if present.id is not null and wanted = present then
    return;  -- each worker defines it at its start; only what is new is written
  end if;
  perform holdfast.check_schedule(wanted, case when not coalesce(define_schedule.from_code, false) then clock end);
  wanted.shift := holdfast.schedule_shift(wanted.tenant, wanted.name, wanted.spread);
  wanted.version := coalesce(present.version, 0) + 1;
  wanted.broken := null;
  wanted.ended_at := null;
  wanted.defined_at := clock;
  if present.id is null
     or (present.cron, present.every, present.at, present.timezone, present.starts_at)
        is distinct from (wanted.cron, wanted.every, wanted.at, wanted.timezone, wanted.starts_at) then
    wanted.words := null;
    wanted.after_at := case
      when wanted.at <= clock then wanted.at  -- it is over before it began
      when wanted.at is not null then wanted.at - interval '1 microsecond'
      when wanted.cron is not null then greatest(clock, wanted.starts_at - interval '1 microsecond')
      when wanted.starts_at is null then date_trunc('second', clock)
      else greatest(wanted.starts_at - wanted.every,
                    holdfast.tick_before(wanted.starts_at, wanted.every, clock)) end;
  elsif present.ended_at is not null then  -- what would have been ticks since its end is not missed
    wanted.after_at := greatest(present.after_at, case when wanted.every is null then clock else
                                  holdfast.tick_before(present.after_at, wanted.every, clock) end);
  end if;
  wanted.upcoming := '{}';
  wanted.is_planned := false;
  wanted.next_at := null;
  wanted.wake_at := case when wanted.paused_at is null then clock end;
  if present.id is null then
    insert into holdfast.schedules (
      tenant, name, face, target, input, options, cron, every, at, timezone, starts_at, ends_at, missed, missed_window,
      overlap, spread, shift, version, after_at, wake_at, defined_at)
    values (wanted.tenant, wanted.name, wanted.face, wanted.target, wanted.input, wanted.options, wanted.cron,
            wanted.every, wanted.at, wanted.timezone, wanted.starts_at, wanted.ends_at, wanted.missed,
            wanted.missed_window, wanted.overlap, wanted.spread, wanted.shift, wanted.version, wanted.after_at,
            wanted.wake_at, wanted.defined_at)
    returning * into wanted;
  else
    update holdfast.schedules s
       set face = wanted.face, target = wanted.target, input = wanted.input, options = wanted.options,
           cron = wanted.cron, every = wanted.every, at = wanted.at, timezone = wanted.timezone,
           starts_at = wanted.starts_at, ends_at = wanted.ends_at, missed = wanted.missed,
           missed_window = wanted.missed_window, overlap = wanted.overlap, spread = wanted.spread,
           shift = wanted.shift, words = wanted.words, version = wanted.version, after_at = wanted.after_at,
           upcoming = wanted.upcoming, is_planned = wanted.is_planned, next_at = wanted.next_at,
           wake_at = wanted.wake_at, ended_at = wanted.ended_at, broken = wanted.broken, defined_at = wanted.defined_at
     where s.id = present.id;
  end if;
  perform holdfast.note_schedule(wanted.tenant, wanted.name, 'defined', 'user', define_schedule.actor, null,
                                 holdfast.schedule_definition(wanted));
  if wanted.cron is null then
    perform holdfast.store_plan(holdfast.plan_by_interval(wanted, clock), clock);
  end if;
  perform holdfast.wake_for_schedules();
end
$$;


--
-- Name: delete_run_steps(bigint[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.delete_run_steps(ids bigint[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
begin
  perform holdfast.call_prunes(delete_run_steps.ids, '{}');
  delete from holdfast.edges e where e.step_id = any (delete_run_steps.ids);  -- guard: edges
  delete from holdfast.note_keys k where k.step_id = any (delete_run_steps.ids);  -- guard: notes
  delete from holdfast.resolutions r where r.step_id = any (delete_run_steps.ids);
  delete from holdfast.steps s where s.id = any (delete_run_steps.ids);
end
$$;


--
-- Name: delete_steps_of_runs(uuid[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.delete_steps_of_runs(ids uuid[]) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  own constant bigint[] := array(
    select n.step_id from holdfast.run_steps n where n.run_id = any (delete_steps_of_runs.ids));
begin
  perform holdfast.delete_run_steps(own);  -- guard: steps
  delete from holdfast.run_steps n where n.run_id = any (delete_steps_of_runs.ids);
  return cardinality(own);
end
$$;


--
-- Name: drop_month(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.drop_month() RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '100ms'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  month text;
  is_blocked boolean := false;
  is_used constant boolean := exists (
    select from pg_locks l
     where l.pid = pg_backend_pid() and l.granted
       and l.relation in ('holdfast.journal'::regclass, 'holdfast.notes'::regclass));
begin
  if is_used then  -- guard: alone
    perform holdfast.refuse('RN010', 'drop_month was called in a transaction that has used the journal',
                            'call it in a transaction of its own');
  end if;
  month := (select (holdfast.old_months(clock))[1] from holdfast.retention_sweep w where w.begins_at <= clock);
  if month is not null then
    begin
      execute format('drop table holdfast.%I', month);
    exception when lock_not_available then
      is_blocked := true;
    end;
  end if;
  -- Without waiting: the journal may be locked now, and whoever sweeps has the row.
  update holdfast.retention_sweep w
     set blocked_at = case when is_blocked then case when w.blocked_month = month then w.blocked_at else clock end end,
         blocked_month = case when is_blocked then month end
   where w.is_only in (select l.is_only from holdfast.retention_sweep l
                     where is_blocked or l.blocked_at is not null for update skip locked);
  return case when not is_blocked then month end;
end
$$;


--
-- Name: enlist_worker(text, text[], text[], text[], jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.enlist_worker(worker text, queues text[], kinds text[] DEFAULT NULL::text[], tenants text[] DEFAULT NULL::text[], about jsonb DEFAULT '{}'::jsonb) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_sort TO 'off'
    SET jit TO 'off'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  serves constant text[] := holdfast.narrow_tenants(enlist_worker.tenants);
  queues constant text[] := array(
    select distinct q.queue from unnest(enlist_worker.queues) q (queue) where q.queue is not null);
  written int;
  served text;
begin
  perform holdfast.check_claim(enlist_worker.worker, 1, null);
  perform holdfast.check_about(enlist_worker.about);
  perform holdfast.check_names('queue', queues);
  perform holdfast.check_names('kind', enlist_worker.kinds);
  perform holdfast.check_names('tenant', enlist_worker.tenants);
  if queues = '{}' then
    perform holdfast.refuse('RN005', format('worker %s serves no queue', enlist_worker.worker),
                            'name at least one, such as default', 'queues');
  end if;
  if serves = '{}' then
    perform holdfast.refuse('RN009', format('worker %s serves no tenant that %s may act for',
                                            enlist_worker.worker, session_user),
                            'name tenants that the login has in holdfast.role_tenants');
  end if;
  delete from holdfast.workers w
   where w.worker = enlist_worker.worker and w.queue <> all (queues) and holdfast.is_own_worker(w.tenants, allowed);
  insert into holdfast.workers as w (worker, queue, kinds, tenants, state, about, started_at, seen_at)
  select enlist_worker.worker, q.queue, enlist_worker.kinds, serves, enlist_worker.about ->> 'state',
         coalesce(enlist_worker.about, '{}'), clock, clock
    from unnest(queues) q (queue)
  on conflict on constraint workers_pkey do update
    set kinds = excluded.kinds, tenants = excluded.tenants, machine = null, state = excluded.state,
      about = excluded.about,
        is_asleep = false, seen_at = excluded.seen_at
    where holdfast.is_own_worker(w.tenants, allowed);
  get diagnostics written = row_count;
  if written < cardinality(queues) then
    perform holdfast.refuse_worker(enlist_worker.worker);
  end if;
  perform holdfast.set_actor('worker', enlist_worker.worker);
  foreach served in array queues loop
    perform holdfast.record_worker(enlist_worker.worker, served, enlist_worker.kinds, serves, null, clock);
  end loop;
  perform holdfast.set_actor();
end
$$;


--
-- Name: error_text(jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.error_text(error jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT COALESCE((error ->> 'message'::text), (error #>> '{}'::text[])) AS "coalesce";
END;


--
-- Name: expire_leases(integer, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.expire_leases(batch integer, clock timestamp with time zone) RETURNS SETOF holdfast.settled_step
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_sort TO 'off'
    SET jit TO 'off'
    AS $$
begin
  perform holdfast.check_claim('rescue', expire_leases.batch, null);
  return query
  select e.* from holdfast.expire_steps(
    array(select s.id from holdfast.steps s
           where s.lease_until < expire_leases.clock  -- guard: lease
           order by s.lease_until
           limit expire_leases.batch
             for update skip locked),
    expire_leases.clock) e;
end
$$;


--
-- Name: expire_steps(bigint[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.expire_steps(ids bigint[], clock timestamp with time zone) RETURNS SETOF holdfast.settled_step
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  moves constant holdfast.step_move[] := array(
    select (s.id, s.lease_id, e.event, expire_steps.clock + holdfast.backoff(p.policy, s.failures + 1), null,
            jsonb_build_object(
              'type', 'LeaseExpired',
              'message', case when e.event = 'failed' then 'Maximum retry attempts exceeded: ' else '' end
                         || format('worker %s was silent past its lease (attempt %s)', s.lease_owner, s.attempt)),
            null)::holdfast.step_move
      from holdfast.steps s
     cross join lateral holdfast.step_policy(s.policy, s.kind, s.machine, s.tenant) p
      left join holdfast.machine_moves m on m.machine = s.machine and m.from_state = s.state and m.event = 'expired'
      left join holdfast.machine_states t on t.machine = m.machine and t.state = m.to_state,
      lateral (select case when t.phase is distinct from 'over' and (
                             s.failures + 1 >= p.tries  -- guard: budget
                             or not p.retryable  -- guard: retryable
                           ) then 'failed' else 'expired' end as event) e
     where s.id = any (expire_steps.ids));
begin
  if moves = '{}' then
    return;
  end if;
  perform holdfast.set_actor('system', 'rescue');
  return query select m.* from holdfast.move_steps(moves, expire_steps.clock) m;
  perform holdfast.park_unmovable_held(moves, expire_steps.clock);
  perform holdfast.set_actor();
end
$$;


--
-- Name: expired_runs(uuid, uuid, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.expired_runs(above uuid, upto uuid, clock timestamp with time zone) RETURNS TABLE(run_id uuid, finished_at timestamp with time zone, steps integer, tenant text, rule text)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
begin
  return query
  with ended as materialized (
    select n.id, n.finished_at, n.total, n.tenant, n.machine, t.outcome
      from holdfast.runs n
      join holdfast.machine_states t on t.machine = n.machine and t.state = n.state
     where n.id > expired_runs.above and n.id <= expired_runs.upto
       and n.finished_at is not null
       and n.moving is null and n.live = 0  -- guard: over
  ),
  ruled as materialized (
    select k.tenant, k.machine, k.outcome, expired_runs.clock - r.keep as ended_by, holdfast.rule_text(r) as rule
      from (select distinct e.tenant, e.machine, e.outcome from ended e) k
     cross join lateral holdfast.retention_rule(k.machine, null, k.outcome, k.tenant) r
     where r.keep is not null)
  select e.id, e.finished_at, e.total, e.tenant, r.rule
    from ended e
    join ruled r on r.tenant = e.tenant and r.machine = e.machine and r.outcome = e.outcome
   where e.finished_at <= r.ended_by  -- guard: age
     and not holdfast.is_any_open(array[e.id::text])  -- guard: undoing
   order by e.id;
end
$$;


--
-- Name: expired_steps(bigint, bigint, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.expired_steps(above bigint, upto bigint, clock timestamp with time zone) RETURNS TABLE(step_id bigint, finished_at timestamp with time zone, tenant text, rule text)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
begin
  return query
  with ended as materialized (
    select s.id, s.finished_at, s.tenant, s.machine, s.queue, t.outcome
      from holdfast.steps s
      join holdfast.machine_states t on t.machine = s.machine and t.state = s.state
     where s.id > expired_steps.above and s.id <= expired_steps.upto
       and s.run_id is null
       and s.finished_at is not null),
  ruled as materialized (
    select k.tenant, k.machine, k.queue, k.outcome, expired_steps.clock - r.keep as ended_by,
           holdfast.rule_text(r) as rule
      from (select distinct e.tenant, e.machine, e.queue, e.outcome from ended e) k
     cross join lateral holdfast.retention_rule(k.machine, k.queue, k.outcome, k.tenant) r
     where r.keep is not null)
  select e.id, e.finished_at, e.tenant, r.rule
    from ended e
    join ruled r on r.tenant = e.tenant and r.machine = e.machine and r.queue = e.queue and r.outcome = e.outcome
   where e.finished_at <= r.ended_by  -- guard: age
   order by e.id;
end
$$;


--
-- Name: face_name(text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.face_name(name text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    BEGIN ATOMIC
 SELECT
         CASE
             WHEN ('holdfast'::text = ('hold'::text || 'fast'::text)) THEN name
             ELSE (('holdfast'::text || '_'::text) || name)
         END AS "case";
END;


--
-- Name: face_violations(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.face_violations() RETURNS TABLE(invariant text, subject text, detail text)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  face text;
begin
  for face in
    select distinct n.nspname
      from holdfast.machines m
      join pg_catalog.pg_namespace n on n.nspname = holdfast.face_name(split_part(m.machine, '.', 1))
      join pg_catalog.pg_proc p on p.pronamespace = n.oid and p.proname = 'violations' and p.pronargs = 0
     where n.nspowner = p.proowner and pg_catalog.pg_get_userbyid(p.proowner) = current_user  -- only our own
     order by 1
  loop
    return query execute format('select v.invariant, v.subject, v.detail from %I.violations() v', face);
  end loop;
end
$$;


--
-- Name: fill_template(text, jsonb, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.fill_template(template text, input jsonb, source text DEFAULT 'input'::text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  filled text := fill_template.template;
  field text;
  content jsonb;
begin
  for field in select distinct m[1] from regexp_matches(fill_template.template, '\{([^{}]+)\}', 'g') m loop
    content := coalesce(fill_template.input -> field, fill_template.input #> string_to_array(field, '.'));
    if coalesce(jsonb_typeof(content), 'null') not in ('string', 'number') then
      perform holdfast.refuse(
        'RN005', format('the %s has no %s, which %s needs', fill_template.source, field, fill_template.template),
        'pass it as text or a number', fill_template.source);
    end if;
    filled := replace(filled, '{' || field || '}', content #>> '{}');
  end loop;
  return filled;
end
$$;


--
-- Name: fire_due(holdfast.schedules, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.fire_due(schedule holdfast.schedules, clock timestamp with time zone) RETURNS holdfast.schedules
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  due constant timestamptz[] := array(
    select u.at from unnest(schedule.upcoming) u (at) where u.at + schedule.shift <= fire_due.clock order by u.at);
  newest constant timestamptz := due[cardinality(due)];
  missed constant timestamptz[] := array(
    select d.at from unnest(due) d (at)
     cross join lateral (select fire_due.clock - d.at - schedule.shift as late) l
     where l.late > interval '60 s' or (l.late > interval '5 s' and d.at <> newest)
     order by d.at);
  caught_up constant timestamptz[] := array(
    select m.at from unnest(missed) m (at)
     where coalesce(fire_due.clock - m.at - schedule.shift <= schedule.missed_window, true)
       and (schedule.missed = 'all' or (schedule.missed = 'one' and m.at = newest))
     order by m.at desc
     limit 100);
  tick timestamptz;
begin
  if due = '{}' then
    return schedule;
  end if;
  perform holdfast.record_missed(
    schedule, array(select m.at from unnest(missed) m (at) where m.at <> all (caught_up)), 1, null, fire_due.clock);
  foreach tick in array due loop
    if tick <> all (missed) or tick = any (caught_up) then
      perform holdfast.fire_tick(schedule, tick, fire_due.clock);
    end if;
  end loop;
  schedule.after_at := newest;
  schedule.last_at := newest;
  schedule.upcoming := schedule.upcoming[cardinality(due) + 1 :];
  return schedule;
end
$$;


--
-- Name: fire_schedules(integer); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.fire_schedules(batch integer DEFAULT 50) RETURNS TABLE(looked_at integer, waits interval, plans jsonb)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  clock timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  schedule holdfast.schedules;
begin
  fire_schedules.looked_at := 0;
  fire_schedules.plans := '[]';
  for schedule in
    select s.* from holdfast.schedules s
     where s.wake_at <= clock and holdfast.matches_any(allowed, s.tenant)  -- guard: tenant
     order by s.wake_at
     limit greatest(1, least(fire_schedules.batch, 1000))
       for update skip locked
  loop
    clock := holdfast.clock();
    fire_schedules.looked_at := fire_schedules.looked_at + 1;
    if schedule.cron is null and holdfast.lacks_ticks(schedule, clock) then
      schedule := holdfast.plan_by_interval(schedule, clock);
    end if;
    if not holdfast.is_all_due(schedule, clock) then  -- guard: newest
      schedule := holdfast.fire_due(schedule, clock);
    end if;
    perform holdfast.store_plan(schedule, clock);
    if holdfast.lacks_ticks(schedule, clock) and schedule.cron is not null then
      fire_schedules.plans := fire_schedules.plans || jsonb_build_object(
        'id', schedule.id, 'version', schedule.version, 'cron', schedule.cron, 'timezone', schedule.timezone,
        'now', holdfast.microseconds(clock), 'after', holdfast.microseconds(
          coalesce(schedule.upcoming[cardinality(schedule.upcoming)], schedule.after_at)));
    end if;
  end loop;
  fire_schedules.waits := holdfast.next_tick_in(allowed);
  return next;
end
$$;


--
-- Name: fire_tick(holdfast.schedules, timestamp with time zone, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.fire_tick(schedule holdfast.schedules, at timestamp with time zone, clock timestamp with time zone) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
  reason constant text := format('schedule %s, tick %s', schedule.name, to_char(
    fire_tick.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'));
  face constant holdfast.faces := (select f from holdfast.faces f where f.face = schedule.face);
  outcome text := 'started';
  open_ids text[] := '{}';
  is_open boolean;
  ids text[] := '{}';
  message text;
  hint text;
  error jsonb;
begin
  if exists (select from holdfast.ticks t
              where t.tenant = schedule.tenant and t.name = schedule.name and t.at = fire_tick.at) then  -- guard: tick
    return null;
  end if;
  begin
    if schedule.overlap <> 'allow' then
      open_ids := holdfast.started_ids(schedule);
      execute format('select %s($1)', holdfast.face_name(face.is_open)) into is_open using open_ids;
      open_ids := case when is_open then open_ids else '{}' end;
    end if;
    if open_ids <> '{}' and schedule.overlap = 'skip' then
      outcome := 'skipped';
      open_ids := '{}';
    else
      perform holdfast.set_actor('scheduler', 'scheduler', reason);
      if open_ids <> '{}' then
        execute format('select %s($1, $2)', holdfast.face_name(face.cancels)) using open_ids, reason;
      end if;
      ids := holdfast.start_tick(schedule, fire_tick.clock);
      perform holdfast.set_actor();
    end if;
  exception when others then
    -- What another try may get past (a deadlock, a full disk, a shutdown) undoes the whole call.
    if sqlstate ~ '^(08|25|40|53|55P03|57|58)' then
      raise;
    end if;
    get stacked diagnostics message = message_text, hint = pg_exception_hint;
    outcome := 'failed';
    ids := '{}';
    open_ids := '{}';
    error := jsonb_strip_nulls(jsonb_build_object('type', sqlstate, 'message', message, 'next', nullif(hint, '')));
  end;
  perform holdfast.record_tick(schedule, fire_tick.at, fire_tick.clock, outcome, ids, open_ids, error);  -- guard: row
  return outcome;
end
$_$;


--
-- Name: forget_idle_limits(integer); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.forget_idle_limits(batch integer) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
begin
  delete from holdfast.limit_states t
   where t.id = any (array(
           select s.id
             from holdfast.limit_states s
             left join lateral holdfast.limit_rule(s.name, s.tenant) r on true
            where s.held = 0 and s.parked = 0 and s.failures = 0 and s.open_until is null
              and coalesce(s.paused_until <= clock, true)
              and coalesce(s.tokens is null or holdfast.tokens_at(s, r, clock) >= r.burst, true)
            limit forget_idle_limits.batch
              for update of s skip locked));
end
$$;


--
-- Name: forget_limit(text, text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.forget_limit(name text, reason text DEFAULT NULL::text, tenant text DEFAULT NULL::text, actor text DEFAULT NULL::text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '10s'
    AS $$
declare
  tenants constant text[] := holdfast.limit_tenants(forget_limit.tenant, format('limit %s', forget_limit.name));
  clock constant timestamptz := holdfast.clock();
  owner text;
  is_changed boolean := false;
begin
  perform holdfast.check_limit_name(forget_limit.name);
  perform holdfast.check_reason(forget_limit.reason);
  perform holdfast.check_name('actor', forget_limit.actor);
  foreach owner in array tenants loop
    continue when not exists (select from holdfast.limits r where r.name = forget_limit.name and r.tenant = owner)
              and not exists (select from holdfast.limit_states s where s.name = forget_limit.name and s.tenant = owner
                                 and s.paused_until is not null);
    perform holdfast.change_rule(forget_limit.name, owner, null);
    insert into holdfast.limit_changes (at, tenant, name, event, actor_kind, actor, login, reason)
    values (clock, owner, forget_limit.name, 'forgotten', 'user', coalesce(forget_limit.actor, session_user),
            case when forget_limit.actor <> session_user then session_user end, forget_limit.reason);
    is_changed := true;
  end loop;
  return is_changed;
end
$$;


--
-- Name: forget_retention(text, text, text, text, text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.forget_retention(outcome text DEFAULT NULL::text, machine text DEFAULT NULL::text, queue text DEFAULT NULL::text, tenant text DEFAULT NULL::text, what text DEFAULT 'runs'::text, reason text DEFAULT NULL::text, actor text DEFAULT NULL::text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  owners constant text[] := holdfast.retention_tenants(forget_retention.what, forget_retention.tenant);
begin
  perform holdfast.check_retention(forget_retention.what, forget_retention.machine, forget_retention.queue,
                                   forget_retention.outcome);
  perform holdfast.check_reason(forget_retention.reason);
  perform holdfast.check_name('actor', forget_retention.actor);
  return (select bool_or(holdfast.change_retention(
                   forget_retention.what, t.owner, forget_retention.machine, forget_retention.queue,
                   forget_retention.outcome, null, true, forget_retention.reason, forget_retention.actor))
            from unnest(owners) t (owner));
end
$$;


--
-- Name: forget_schedule(text, text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.forget_schedule(name text, reason text DEFAULT NULL::text, tenant text DEFAULT 'default'::text, actor text DEFAULT NULL::text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform holdfast.check_name('the name of a schedule', coalesce(forget_schedule.name, ''));
  perform holdfast.check_tenant(forget_schedule.tenant);  -- guard: tenant
  perform holdfast.check_reason(forget_schedule.reason);
  perform holdfast.check_name('actor', forget_schedule.actor);
  delete from holdfast.schedules s where s.tenant = forget_schedule.tenant and s.name = forget_schedule.name;
  if not found then
    return false;
  end if;
  perform holdfast.note_schedule(forget_schedule.tenant, forget_schedule.name, 'forgotten', 'user',
                                 forget_schedule.actor, forget_schedule.reason);
  return true;
end
$$;


--
-- Name: guard_violations(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.guard_violations() RETURNS TABLE(invariant text, subject text, detail text)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  select 'trigger_fires', w.table_name || '.' || w.name, 'the trigger is missing or disabled; run `holdfast db migrate`'
    from (values ('steps', 'journaled'), ('steps', 'begins'), ('steps', 'keeps_its_id'), ('runs', 'journaled'),
                 ('runs', 'begins'), ('runs', 'keeps_its_id'), ('edges', 'acyclic'), ('journal', 'stays'),
                 ('journal', 'stays_whole'), ('notes', 'stays'), ('notes', 'stays_whole'),
                 ('queue_pauses', 'stays'), ('queue_pauses', 'stays_whole'),
                 ('limit_changes', 'stays'), ('limit_changes', 'stays_whole'),
                 ('schedule_changes', 'stays'), ('schedule_changes', 'stays_whole'),

                 ('retention_changes', 'stays'), ('retention_changes', 'stays_whole')) w (table_name, name)
   where not exists (select from pg_trigger t
                      where t.tgrelid = to_regclass('holdfast.' || w.table_name) and t.tgname = w.name
                        and t.tgenabled in ('O', 'A'))
  union all
  select 'row_security_is_forced', c.relname, 'row-level security is off or not forced'
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant'
   where c.relnamespace = 'holdfast'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
     and c.relname <> 'role_tenants' and not (c.relrowsecurity and c.relforcerowsecurity)
  union all
  select 'partitions_are_ahead', 'journal', format('only %s ahead', holdfast.partitions_ahead())
   where holdfast.partitions_ahead() < interval '30 days'
$$;


--
-- Name: limit_states; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.limit_states (
    id bigint NOT NULL,
    held integer DEFAULT 0 NOT NULL,
    parked integer DEFAULT 0 NOT NULL,
    tokens numeric,
    filled_at timestamp with time zone,
    bucket_at timestamp with time zone,
    wake_at timestamp with time zone,
    paused_until timestamp with time zone,
    failures integer DEFAULT 0 NOT NULL,
    open_until timestamp with time zone,
    open_for interval,
    probe_id bigint,
    name text NOT NULL COLLATE pg_catalog."C",
    tenant text NOT NULL,
    paused_by text,
    pause_reason text,
    CONSTRAINT counts_are_not_negative CHECK (((held >= 0) AND (parked >= 0) AND (failures >= 0)))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.02');

ALTER TABLE ONLY holdfast.limit_states FORCE ROW LEVEL SECURITY;


--
-- Name: has_limits(text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.has_limits(word text) RETURNS boolean
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT ((EXISTS ( SELECT
            FROM holdfast.limits r
           WHERE ((r.name >= (has_limits.word || ':'::text)) AND (r.name < (has_limits.word || ';'::text))))) OR (EXISTS ( SELECT
            FROM holdfast.limit_states s
           WHERE ((s.name >= (has_limits.word || ':'::text)) AND (s.name < (has_limits.word || ';'::text))))));
END;


--
-- Name: retention_rules; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.retention_rules (
    what text NOT NULL,
    tenant text NOT NULL,
    machine text,
    queue text,
    outcome text,
    keep interval,
    set_at timestamp with time zone NOT NULL,
    is_default boolean DEFAULT false NOT NULL,
    CONSTRAINT journal_is_kept_for_months CHECK (((what <> 'journal'::text) OR (keep >= '1 mon'::interval))),
    CONSTRAINT keep_is_not_negative CHECK ((keep >= '00:00:00'::interval)),
    CONSTRAINT known_kept_outcome CHECK ((outcome = ANY (ARRAY['succeeded'::text, 'failed'::text, 'cancelled'::text, 'partial'::text, 'undone'::text]))),
    CONSTRAINT known_retention CHECK ((what = ANY (ARRAY['runs'::text, 'journal'::text, 'ticks'::text]))),
    CONSTRAINT only_runs_are_told_apart CHECK (((what = 'runs'::text) OR ((tenant = '*'::text) AND (num_nonnulls(machine, queue, outcome) = 0))))
);

ALTER TABLE ONLY holdfast.retention_rules FORCE ROW LEVEL SECURITY;


--
-- Name: history_rule(text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.history_rule(what text) RETURNS SETOF holdfast.retention_rules
    LANGUAGE sql STABLE ROWS 1
    BEGIN ATOMIC
 SELECT r.what,
     r.tenant,
     r.machine,
     r.queue,
     r.outcome,
     r.keep,
     r.set_at,
     r.is_default
    FROM holdfast.retention_rules r
   WHERE (r.what = history_rule.what)
   ORDER BY r.is_default
  LIMIT 1;
END;


--
-- Name: id_of_key(text, text, bytea); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.id_of_key(tenant text, key text, hash bytea) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  used holdfast.keys;
begin
  select k.* into strict used from holdfast.keys k where k.tenant = id_of_key.tenant and k.key = id_of_key.key;
  if used.input_hash <> id_of_key.hash then  -- guard: input
    perform holdfast.refuse('RN003', format('key %s was already used with another input', id_of_key.key),
                            format('it started %s; use another key for another input', used.id), 'key');
  end if;
  return used.id;
end
$$;


--
-- Name: initial_state(text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.initial_state(machine text, subject text) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  state constant text := (
    select min(s.state) from holdfast.machine_states s join holdfast.machines m on m.machine = s.machine
     where s.machine = initial_state.machine and m.subject = initial_state.subject and s.is_initial);
begin
  if state is null then
    perform holdfast.refuse('RN005', format('there is no machine %s for a %s', initial_state.machine,
                                            initial_state.subject),
                            'holdfast.machines lists them; a face brings its own', 'machine');
  end if;
  return state;
end
$$;


--
-- Name: is_all_due(holdfast.schedules, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.is_all_due(schedule holdfast.schedules, clock timestamp with time zone) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT ((NOT (schedule).is_planned) AND COALESCE((((schedule).upcoming[cardinality((schedule).upcoming)] + (schedule).shift) <= clock), true));
END;


--
-- Name: is_due(holdfast.steps, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.is_due(step holdfast.steps, clock timestamp with time zone) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT ((step).due_at <= clock);
END;


--
-- Name: is_in_reach(timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.is_in_reach(due_at timestamp with time zone) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT ((due_at >= '1900-01-02 00:00:00+00'::timestamp with time zone) AND (due_at <= '9998-12-31 00:00:00+00'::timestamp with time zone));
END;


--
-- Name: is_kernels_parking(text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.is_kernels_parking(parked_for text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT (parked_for = ANY (ARRAY['handler'::text, 'move'::text, 'limit'::text]));
END;


--
-- Name: is_live_worker(timestamp with time zone, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.is_live_worker(seen_at timestamp with time zone, clock timestamp with time zone) RETURNS boolean
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT (seen_at > (clock - '00:02:30'::interval));
END;


--
-- Name: is_name(text, integer); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.is_name(name text, longest integer DEFAULT 200) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT ((name <> ''::text) AND (name <> '*'::text) AND (length(name) <= longest) AND (name !~ '[\u0001-\u001f\u007f-\u009f]'::text));
END;


--
-- Name: ticks; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.ticks (
    tenant text NOT NULL,
    name text NOT NULL,
    at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    fired_at timestamp with time zone NOT NULL,
    cause text NOT NULL,
    outcome text NOT NULL,
    face text NOT NULL,
    ids text[] DEFAULT '{}'::text[] NOT NULL,
    cancelled text[] DEFAULT '{}'::text[] NOT NULL,
    error jsonb,
    ticks integer DEFAULT 1 NOT NULL,
    until_at timestamp with time zone,
    actor text NOT NULL,
    CONSTRAINT failed_has_an_error CHECK (((outcome = 'failed'::text) = (error IS NOT NULL))),
    CONSTRAINT known_cause CHECK ((cause = ANY (ARRAY['clock'::text, 'run'::text, 'backfill'::text]))),
    CONSTRAINT known_outcome CHECK ((outcome = ANY (ARRAY['started'::text, 'skipped'::text, 'missed'::text, 'failed'::text]))),
    CONSTRAINT started_has_ids CHECK (((outcome = 'started'::text) = (ids <> '{}'::text[])))
);

ALTER TABLE ONLY holdfast.ticks FORCE ROW LEVEL SECURITY;


--
-- Name: is_needed_tick(holdfast.ticks); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.is_needed_tick(tick holdfast.ticks) RETURNS boolean
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT (EXISTS ( SELECT
            FROM holdfast.schedules s
           WHERE ((s.tenant = (is_needed_tick.tick).tenant) AND (s.name = (is_needed_tick.tick).name) AND ((s.last_at = (is_needed_tick.tick).at) OR (((is_needed_tick.tick).outcome = 'started'::text) AND (10 > ( SELECT count(*) AS count
                    FROM ( SELECT
                            FROM holdfast.ticks n
                           WHERE ((n.tenant = (is_needed_tick.tick).tenant) AND (n.name = (is_needed_tick.tick).name) AND (n.outcome = 'started'::text) AND (n.fired_at > (is_needed_tick.tick).fired_at))
                          LIMIT 10) later))))))) AS "exists";
END;


--
-- Name: stream_ids; Type: SEQUENCE; Schema: holdfast; Owner: -
--

CREATE SEQUENCE holdfast.stream_ids
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: limit_changes; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.limit_changes (
    id bigint DEFAULT nextval('holdfast.stream_ids'::regclass) NOT NULL,
    at timestamp with time zone NOT NULL,
    tenant text NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    event text NOT NULL,
    actor_kind text NOT NULL,
    actor text NOT NULL,
    login text,
    reason text,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT known_limit_event CHECK ((event = ANY (ARRAY['defined'::text, 'forgotten'::text, 'paused'::text, 'resumed'::text, 'opened'::text, 'closed'::text])))
);

ALTER TABLE ONLY holdfast.limit_changes FORCE ROW LEVEL SECURITY;


--
-- Name: is_overruled(text, text, jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.is_overruled(name text, tenant text, rule jsonb) RETURNS boolean
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT (EXISTS ( SELECT
            FROM holdfast.limit_changes a
           WHERE ((a.name = is_overruled.name) AND (a.tenant = is_overruled.tenant) AND (a.event = 'defined'::text) AND (a.actor_kind = 'worker'::text) AND (a.payload = is_overruled.rule) AND (a.id < ( SELECT max(p.id) AS max
                    FROM holdfast.limit_changes p
                   WHERE ((p.name = is_overruled.name) AND (p.tenant = is_overruled.tenant) AND (p.event = ANY (ARRAY['defined'::text, 'forgotten'::text])) AND (p.actor_kind = 'user'::text))))))) AS "exists";
END;


--
-- Name: is_own_worker(text[], text[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.is_own_worker(tenants text[], allowed text[]) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT ((allowed IS NULL) OR COALESCE(((tenants <@ allowed) AND (tenants <> '{}'::text[])), false));
END;


--
-- Name: is_probed(holdfast.limit_states); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.is_probed(state holdfast.limit_states) RETURNS boolean
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT (((state).probe_id IS NOT NULL) AND (EXISTS ( SELECT
            FROM holdfast.steps s
           WHERE ((s.id = (is_probed.state).probe_id) AND (s.lease_id IS NOT NULL) AND ((is_probed.state).id = ANY (s.holds))))));
END;


--
-- Name: would_admit(holdfast.steps, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.would_admit(step holdfast.steps, clock timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  charge constant numeric := coalesce(step.weight, 1) + coalesce((
    select k.call_weight from holdfast.kinds k
     where k.kind = step.kind and k.tenant in (step.tenant, '*') order by k.tenant = '*' limit 1), 0);
begin
  if coalesce(step.due_at, case when step.parked_for = 'limit' then step.parked_due_at end) <= would_admit.clock then
    return not exists (
      select
        from unnest(step.limits || array['queue:' || step.queue, 'kind:' || step.kind,
                                         'tenant:' || step.tenant]) n (name)
       cross join lateral (values (step.tenant), ('*')) t (tenant)
        left join holdfast.limit_states h on h.name = n.name and h.tenant = t.tenant
        left join lateral holdfast.limit_rule(n.name, t.tenant) r on true
       where coalesce(h.held, 0) >= r.concurrency
          or greatest(h.paused_until, r.paused_until, h.open_until) > would_admit.clock
          or (h.open_until is not null and holdfast.is_probed(h))
          or (h.id is not null
              and holdfast.tokens_at(h, r, would_admit.clock) < least(charge, r.burst)));
  end if;
  return false;
end
$$;


--
-- Name: is_ready(holdfast.steps, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.is_ready(step holdfast.steps, clock timestamp with time zone) RETURNS boolean
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT
         CASE
             WHEN ((EXISTS ( SELECT
                FROM holdfast.limits)) OR (EXISTS ( SELECT
                FROM holdfast.limit_states))) THEN holdfast.would_admit(step, clock)
             ELSE holdfast.is_due(step, clock)
         END AS is_due;
END;


--
-- Name: is_rule_of_app(text, text, jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.is_rule_of_app(name text, tenant text, rule jsonb) RETURNS boolean
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT COALESCE(( SELECT (c.payload = is_rule_of_app.rule)
            FROM holdfast.limit_changes c
           WHERE ((c.name = is_rule_of_app.name) AND (c.tenant = is_rule_of_app.tenant) AND (c.event = 'defined'::text) AND (c.actor_kind = 'worker'::text))
           ORDER BY c.id DESC
          LIMIT 1), false) AS "coalesce";
END;


--
-- Name: journal_new_runs(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.journal_new_runs() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  announced constant text := nullif(current_setting('holdfast.actor_kind', true), '');
  actor constant text := coalesce(nullif(current_setting('holdfast.actor', true), ''), session_user);
  reason constant text := nullif(current_setting('holdfast.reason', true), '');
  login constant text := case when announced in ('user', 'api') and actor <> session_user then session_user end;
  listening constant text[] := array(select c.machine from holdfast.machines c where c.moved is not null);
begin
  perform holdfast.refuse('RN007', format('%s run cannot begin as %s', n.machine, n.state))
     from n
     left join holdfast.machine_states s on s.machine = n.machine and s.state = n.state
    where s.is_initial is not true  -- guard: initial
       or n.finished_at is not null;
  insert into holdfast.journal (at, tenant, machine, from_state, event, to_state, actor_kind,
                                actor, run_id, reason, login)
  select clock, n.tenant, n.machine, 'new', 'created', n.state, coalesce(announced, 'user'), actor, n.id, reason, login
    from n;
  if listening <> '{}' then
    perform holdfast.call_moved(
       n.machine, array_agg((n.id, 'new', 'created', n.state, null)::holdfast.shared_move))
       from n
      where n.machine = any (listening)
      group by n.machine;
  end if;
  return null;
end
$$;


--
-- Name: journal_run_moves(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.journal_run_moves() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_hashjoin TO 'on'
    SET enable_seqscan TO 'on'
    SET enable_nestloop TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  announced constant text := nullif(current_setting('holdfast.actor_kind', true), '');
  actor constant text := coalesce(nullif(current_setting('holdfast.actor', true), ''), session_user);
  reason constant text := nullif(current_setting('holdfast.reason', true), '');
  login constant text := case when announced in ('user', 'api') and actor <> session_user then session_user end;
  listening constant text[] := array(select c.machine from holdfast.machines c where c.moved is not null);
begin
  if announced is null then
    perform holdfast.check_by_hand('run', n.machine, n.id::text, o.machine, o.state, n.state, false,
                                   n.finished_at is not null)
       from o join n on n.id = o.id;
  end if;
  insert into holdfast.journal (at, tenant, machine, from_state, event, to_state, actor_kind,
                                actor, run_id, reason, login)
  select clock, n.tenant, n.machine, o.state, case when announced is null then 'by_hand' else n.last_event end,
         case when announced is null or (
                m.to_state = n.state  -- guard: move
                and announced = any (m.actors)  -- guard: actor
              ) then n.state
              else holdfast.refuse_move(n.machine, o.state, n.last_event, n.state, announced, n.id::text) end,
         coalesce(announced, 'user'), actor, n.id, reason, login
    from o
    join n on n.id = o.id
    left join holdfast.machine_moves m on m.machine = o.machine and m.from_state = o.state and m.event = n.last_event
   where o.state <> n.state;
  if listening <> '{}' then
    perform holdfast.call_moved(n.machine, array_agg((
              n.id, o.state, case when announced is null then 'by_hand' else n.last_event end, n.state, null
            )::holdfast.shared_move))
       from o join n on n.id = o.id
      where n.machine = any (listening) and o.state <> n.state
      group by n.machine;
  end if;
  return null;
end
$$;


--
-- Name: journal_step_moves(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.journal_step_moves() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_hashjoin TO 'on'
    SET enable_seqscan TO 'on'
    SET enable_nestloop TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  announced constant text := nullif(current_setting('holdfast.actor_kind', true), '');
  actor constant text := current_setting('holdfast.actor', true);
  reason constant text := nullif(current_setting('holdfast.reason', true), '');
  login constant text := case when announced in ('user', 'api') and actor <> session_user then session_user end;
  listening constant text[] := array(select c.machine from holdfast.machines c where c.moved is not null);
  is_limited constant boolean := exists (select from holdfast.limit_states);
  has_breakers constant boolean := is_limited and exists (
    select from holdfast.limits r where r.breaker_after is not null);
begin
  if announced is null then
    perform holdfast.check_by_hand('step', n.machine, n.id::text, o.machine, o.state, n.state, n.lease_id is not null,
                                   n.finished_at is not null)
       from o join n on n.id = o.id;
  end if;
  insert into holdfast.journal (at, tenant, machine, from_state, event, to_state, actor_kind, actor,
                                step_id, run_id, attempt, lease_id, reason, error, login)
  select clock, n.tenant, n.machine, o.state, case when announced is null then 'by_hand' else n.last_event end,
         -- Null-safe: a move that is not found is not equal.
         case when announced is null or (
                m.to_state = n.state  -- guard: move
                and announced = any (m.actors)  -- guard: actor
              ) then n.state
              else holdfast.refuse_move(n.machine, o.state, n.last_event, n.state, announced, n.id::text) end,
         coalesce(announced, 'user'),
         case announced when 'worker' then coalesce(o.lease_owner, actor)
                        else coalesce(nullif(actor, ''), session_user) end,
         n.id, n.run_id, n.attempt, coalesce(o.lease_id, n.lease_id), reason,
         -- Each failed attempt has its error, also if it is equal to the previous one.
         case when n.error is distinct from o.error
                or (announced is not null and n.last_event in ('retried', 'failed', 'expired')) then n.error end,
         login
    from o
    join n on n.id = o.id
    left join holdfast.machine_moves m on m.machine = o.machine and m.from_state = o.state and m.event = n.last_event
   where o.state <> n.state or o.lease_id is distinct from n.lease_id;
  -- Asked first: most statements move only steps of machines that listen to nothing, and need no join.
  if listening <> '{}' and exists (select from n where n.machine = any (listening)) then
    perform holdfast.call_moved(
       g.machine, array_agg((g.run_id, g.from_state, g.event, g.to_state, g.step_ids)::holdfast.shared_move))
       from (select n.machine, n.run_id, o.state as from_state, n.state as to_state, array_agg(n.id) as step_ids,
                    case when announced is null then 'by_hand' else n.last_event end as event
               from o join n on n.id = o.id
              where n.machine = any (listening) and (o.state <> n.state or o.lease_id is distinct from n.lease_id)
              group by n.machine, n.run_id, o.state, n.state, event) g
      group by g.machine;
  end if;
  if is_limited then
    perform holdfast.count_limits(array(
      -- Steps that are alike are counted together. Breakers need to know how each ended, and which was the probe.
      with alike as materialized (
        select case when o.lease_id is not null then o.holds end as held_before,
               case when n.lease_id is not null then n.holds end as held_now,
               case when o.parked_for = 'limit' then o.limited_by end as parked_before,
               case when n.parked_for = 'limit' then n.limited_by end as parked_now,
               case when has_breakers and n.lease_id is distinct from o.lease_id then
                 case when announced is null then 'by_hand' else n.last_event end end as event,
               case when has_breakers and n.lease_id is distinct from o.lease_id then n.error ->> 'type' end
                 as error_type,
               case when has_breakers then o.id end as step_id, count(*)::int as steps
          from o join n on n.id = o.id
         where coalesce(o.holds, n.holds) is not null or coalesce(o.limited_by, n.limited_by) is not null
         group by 1, 2, 3, 4, 5, 6, 7)
      select (c.limit_id, c.event, c.error_type, sum(c.held), sum(c.parked),
              array_agg(c.step_id) filter (where c.event is not null))::holdfast.limit_change
        from (select h.limit_id, -a.steps as held, 0 as parked, a.step_id, a.event, a.error_type
                from alike a cross join unnest(a.held_before) h (limit_id)
              union all
              select h.limit_id, a.steps, 0, null, null, null from alike a cross join unnest(a.held_now) h (limit_id)
              union all
              select a.parked_before, 0, -a.steps, null, null, null from alike a
              union all
              select a.parked_now, 0, a.steps, null, null, null from alike a) c
       where c.limit_id is not null
       group by c.limit_id, c.event, c.error_type
      having sum(c.held) <> 0 or sum(c.parked) <> 0), clock);
  end if;
  if announced is null then
    perform holdfast.remember_queues(array_agg(q.queue), array_agg(q.priority))
       from (select n.queue, max(n.priority)::int as priority from n group by n.queue) q;
    perform holdfast.catch_up_by_hand(
      array(select n.id from o join n on n.id = o.id where o.state <> n.state and n.run_id is not null),
      array(select distinct n.run_id from o join n on n.id = o.id
             where n.run_id is not null
               and (o.state <> n.state or o.finished_at is distinct from n.finished_at
                    or holdfast.is_live(o) <> holdfast.is_live(n))));
  end if;
  return null;
end
$$;


--
-- Name: judge_breakers(holdfast.limit_change[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.judge_breakers(changes holdfast.limit_change[], clock timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  with ended as (
    select s.id, s.name, s.tenant, s.open_until, s.open_for, s.probe_id, r.breaker_for, r.breaker_after,
           case when e.successes > 0 then 0 else s.failures end + e.counted as failures, e.probe_event
      from (select u.limit_id,
                   coalesce(-sum(u.held) filter (where u.event in ('succeeded', 'continued')), 0) as successes
              from unnest(judge_breakers.changes) u where u.held < 0 group by u.limit_id) g
      join holdfast.limit_states s on s.id = g.limit_id
     cross join lateral holdfast.limit_rule(s.name, s.tenant) r
     cross join lateral (
       select g.successes,
              coalesce(-sum(u.held) filter (
                where u.event in ('retried', 'failed', 'expired') and u.error_type = any (r.breaker_counts)), 0)::int
                as counted,
              max(u.event) filter (where s.probe_id = any (u.step_ids)) as probe_event
         from unnest(judge_breakers.changes) u
        where u.limit_id = s.id and u.held < 0) e
     where r.breaker_after is not null),
  judged as (
    select e.*,
           case when e.probe_event in ('succeeded', 'continued') then 'closed'
                when e.probe_event in ('retried', 'failed', 'expired') then 'reopened'
                when e.open_until is null and e.failures >= e.breaker_after then 'opened' end as verdict
      from ended e),
  changed as (
    update holdfast.limit_states s
       set failures = case when j.verdict = 'closed' then 0 else j.failures end,
           open_for = case j.verdict when 'closed' then null when 'opened' then j.breaker_for
                                     when 'reopened' then least(2 * j.open_for, greatest(j.open_for, interval '1 day'))
                                     else s.open_for end,
           open_until = case j.verdict
                          when 'closed' then null when 'opened' then judge_breakers.clock + j.breaker_for
                          when 'reopened' then judge_breakers.clock
                                               + least(2 * j.open_for, greatest(j.open_for, interval '1 day'))
                          else s.open_until end,
           probe_id = case when j.probe_event is null then s.probe_id end
      from judged j
     where s.id = j.id
       and (j.verdict is not null or j.probe_event is not null or s.failures <> j.failures)
    returning s.name, s.tenant, s.open_until, s.failures, j.verdict)
  insert into holdfast.limit_changes (at, tenant, name, event, actor_kind, actor, payload)
  select judge_breakers.clock, c.tenant, c.name, case when c.verdict = 'closed' then 'closed' else 'opened' end,
         'system', 'breaker', jsonb_strip_nulls(jsonb_build_object(
           'until', c.open_until, 'failures', c.failures,
           'after_probe', case when c.verdict = 'reopened' then true end))
    from changed c
   where c.verdict is not null;
end
$$;


--
-- Name: kinds; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.kinds (
    kind text NOT NULL,
    policy text,
    lease interval,
    timeout interval,
    queue text,
    tenant text DEFAULT '*'::text NOT NULL,
    limits text[],
    weight text,
    call_weight numeric(20,6),
    CONSTRAINT lease_is_positive CHECK ((lease > '00:00:00'::interval)),
    CONSTRAINT timeout_is_positive CHECK ((timeout > '00:00:00'::interval))
);

ALTER TABLE ONLY holdfast.kinds FORCE ROW LEVEL SECURITY;


--
-- Name: kinds_of(text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.kinds_of(tenant text) RETURNS TABLE(kind text, policy text, lease interval, queue text)
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT k.kind,
     k.policy,
     k.lease,
     k.queue
    FROM holdfast.kinds k
   WHERE ((k.tenant = kinds_of.tenant) OR ((k.tenant = '*'::text) AND (NOT (EXISTS ( SELECT
            FROM holdfast.kinds o
           WHERE ((o.kind = k.kind) AND (o.tenant = kinds_of.tenant)))))));
END;


--
-- Name: lacks_ticks(holdfast.schedules, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.lacks_ticks(schedule holdfast.schedules, clock timestamp with time zone) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT ((NOT (schedule).is_planned) AND ((cardinality((schedule).upcoming) < 5) OR holdfast.is_all_due(schedule, clock)));
END;


--
-- Name: lease_holder(bigint[], bigint[], jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.lease_holder(step_ids bigint[], lease_ids bigint[], others jsonb) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  return coalesce(
    (select s.lease_owner
       from unnest(lease_holder.step_ids, lease_holder.lease_ids) u (step_id, lease_id)
      cross join lateral (  -- offset 0: one by one and by primary key, whatever the statistics say
        select h.lease_owner from holdfast.steps h where h.id = u.step_id and h.lease_id = u.lease_id offset 0) s
      limit 1),
    (select s.lease_owner
       from jsonb_to_recordset(lease_holder.others) u (step_id bigint, lease_id bigint)
      cross join lateral (
        select h.lease_owner from holdfast.steps h where h.id = u.step_id and h.lease_id = u.lease_id offset 0) s
      limit 1),
    'nobody');
end
$$;


--
-- Name: lease_of(text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.lease_of(kind text, tenant text) RETURNS interval
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT k.lease
    FROM holdfast.kinds_of(lease_of.tenant) k(kind, policy, lease, queue)
   WHERE (k.kind = lease_of.kind);
END;


--
-- Name: left_unsettled(bigint[], bigint[], jsonb[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.left_unsettled(step_ids bigint[], lease_ids bigint[], results jsonb[]) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object(
             'step_id', u.step_id, 'lease_id', u.lease_id, 'outcome', 'done', 'result', u.result)), '[]')
      from unnest(left_unsettled.step_ids, left_unsettled.lease_ids,
                  left_unsettled.results) u (step_id, lease_id, result)
     cross join lateral (  -- offset 0: one by one and by primary key, whatever the statistics say
       select from holdfast.steps h where h.id = u.step_id and h.lease_id = u.lease_id offset 0) s);
end
$$;


--
-- Name: limit_family(text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.limit_family(name text) RETURNS text
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT
         CASE
             WHEN (strpos(name, ':'::text) > 0) THEN (split_part(name, ':'::text, 1) || ':*'::text)
             ELSE NULL::text
         END AS "case";
END;


--
-- Name: limit_room(text, integer, bigint[], integer[], bigint[], numeric[], bigint[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.limit_room(queue text, priority integer, candidates bigint[], ords integer[], limit_ids bigint[], charges numeric[], pending bigint[], clock timestamp with time zone, OUT ids bigint[], OUT slots integer[], OUT tokens numeric[], OUT bursts numeric[], OUT is_shut boolean[], OUT is_half_open boolean[], OUT is_behind boolean[], OUT rests numeric[], OUT fits boolean) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  wanted constant bigint[] := array(select u.id from unnest(limit_room.limit_ids) u (id) group by u.id);
begin
  limit_room.ids := array(
    select t.id from holdfast.limit_states t
     where t.id = any (wanted) order by t.id
       for update skip locked);  -- guard: lock
  -- Another statement than the one that waits for the locks: it sees what those committed who had them before.
  select coalesce(array_agg(l.id), '{}'), coalesce(array_agg(l.slots), '{}'), coalesce(array_agg(l.tokens), '{}'),
         coalesce(array_agg(l.burst), '{}'), coalesce(array_agg(l.is_shut), '{}'),
         coalesce(array_agg(l.is_half_open), '{}'), coalesce(array_agg(l.is_behind), '{}'),
         array_agg(l.tokens - l.charge),
         count(*) = cardinality(wanted) and bool_and(
           not (l.is_shut or l.is_half_open or l.is_behind) and l.steps <= l.slots
           and coalesce(l.charge <= l.tokens, true))
    into limit_room.ids, limit_room.slots, limit_room.tokens, limit_room.bursts, limit_room.is_shut,
         limit_room.is_half_open, limit_room.is_behind, limit_room.rests, limit_room.fits
    from (select t.id, r.burst,
                 coalesce(r.concurrency - t.held
                          - cardinality(array_positions(limit_room.pending, t.id)),  -- guard: pending
                          2147483647) as slots,
                 holdfast.tokens_at(t, r, limit_room.clock) as tokens,
                 coalesce(greatest(t.paused_until, r.paused_until, t.open_until) > limit_room.clock, false)
                 or (t.open_until is not null
                     and (holdfast.is_probed(t) or t.id = any (limit_room.pending))) as is_shut,
                 t.open_until is not null as is_half_open,
                 t.parked > 0 and exists (
                   select from holdfast.steps p
                    where p.limited_by = t.id and p.queue = limit_room.queue and coalesce(p.parked_for, '') = 'limit'
                      and p.priority >= limit_room.priority and p.id <> all (limit_room.candidates)) as is_behind,
                 d.steps, d.charge
            from holdfast.limit_states t
            join (select u.limit_id, count(*) as steps,
                         coalesce(sum(limit_room.charges[u.ord]), count(*)) as charge
                    from unnest(limit_room.ords, limit_room.limit_ids) u (ord, limit_id)
                   group by u.limit_id) d on d.limit_id = t.id
            left join lateral holdfast.limit_rule(t.name, t.tenant) r on true
           where t.id = any (limit_room.ids)
           order by t.id) l;  -- guard: later
end
$$;


--
-- Name: limit_rule(text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.limit_rule(name text, tenant text) RETURNS SETOF holdfast.limits
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT r.name,
     r.tenant,
     r.concurrency,
     r.rate,
     r.per,
     r.burst,
     r.breaker_after,
     r.breaker_for,
     r.breaker_counts,
     r.paused_until,
     r.paused_by,
     r.pause_reason,
     r.defined_at
    FROM holdfast.limits r
   WHERE ((r.tenant = limit_rule.tenant) AND (r.name = ANY (ARRAY[limit_rule.name, holdfast.limit_family(limit_rule.name)])))
   ORDER BY (r.name = limit_rule.name) DESC
  LIMIT 1;
END;


--
-- Name: limit_tenants(text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.limit_tenants(tenant text, what text) RETURNS text[]
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if limit_tenants.tenant is null then
    return holdfast.tenants_to_define(limit_tenants.what);
  end if;
  if limit_tenants.tenant = '*' then
    perform holdfast.check_all_tenants(limit_tenants.what);
  else
    perform holdfast.check_tenant(limit_tenants.tenant);  -- guard: tenant
  end if;
  return array[limit_tenants.tenant];
end
$$;


--
-- Name: limit_violations(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.limit_violations() RETURNS TABLE(invariant text, subject text, detail text)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  with counted as (
    select t.id, t.name, t.tenant, t.held, t.parked, t.wake_at, t.paused_until, t.open_until,
           (select count(*) from holdfast.steps s where s.lease_id is not null and t.id = any (s.holds)) as holders,
           (select count(*) from holdfast.steps s
             where s.limited_by = t.id and coalesce(s.parked_for, '') = 'limit') as waiting,
           r.concurrency, r.paused_until as family_paused_until,
           (select bool_or(holdfast.tokens_suffice_at(t, r, q.charge, c.clock) > c.clock is not true)
              from holdfast.parked_queues(t.id) q) as has_tokens,
           t.open_until is not null and holdfast.is_probed(t) as is_probed, c.clock
      from holdfast.limit_states t
     cross join (select holdfast.clock() as clock) c
      left join lateral holdfast.limit_rule(t.name, t.tenant) r on true)
  select 'limit_counts_its_holders', format('limit %s of %s', l.name, l.tenant),
         format('it counts %s, held are %s', l.held, l.holders)
    from counted l where l.held <> l.holders
  union all
  select 'limit_counts_its_queue', format('limit %s of %s', l.name, l.tenant),
         format('it counts %s, parked are %s', l.parked, l.waiting)
    from counted l where l.parked <> l.waiting
  union all
  select 'parked_is_refused', format('limit %s of %s', l.name, l.tenant),
         format('it would admit one of %s parked steps, and is to look at them %s', l.parked,
                coalesce('at ' || l.wake_at, 'never'))
    from counted l
   where l.parked > 0 and l.held < coalesce(l.concurrency, 2147483647)
     and coalesce(greatest(l.paused_until, l.family_paused_until, l.open_until) <= l.clock, true)
     and not l.is_probed and l.has_tokens and (l.wake_at <= l.clock) is not true
  union all
  select 'parked_on_a_limit', 'step ' || s.id, format('parked for a limit that is not there: %s', s.limited_by)
    from holdfast.steps s
   where s.parked_for = 'limit'
     and (s.parked_due_at is null or not exists (select from holdfast.limit_states t where t.id = s.limited_by))
$$;


--
-- Name: limits_for(text[], text[], jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.limits_for(given text[], templates text[], input jsonb) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  names constant text[] := coalesce(limits_for.given, array(
    select holdfast.fill_template(t.template, limits_for.input) from unnest(limits_for.templates) t (template)));
begin
  if names = '{}' then
    return null;
  end if;
  perform holdfast.check_limit_names(names);
  return names;
end
$$;


--
-- Name: limits_in_force(text, bigint[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.limits_in_force(queue text, candidates bigint[], OUT ords integer[], OUT limit_ids bigint[], OUT charges numeric[], OUT limited_by bigint[]) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_nestloop TO 'on'
    SET enable_hashjoin TO 'on'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_sort TO 'on'
    SET jit TO 'off'
    AS $$
declare
  by_queue constant boolean := holdfast.has_limits('queue');
  by_kind constant boolean := holdfast.has_limits('kind');
  by_tenant constant boolean := holdfast.has_limits('tenant');
  has_call_weights constant boolean := exists (select from holdfast.kinds k where k.call_weight is not null);
  new_names text[];
  new_tenants text[];
begin
  loop
    with step as materialized (
      select u.ord::int as ord, h.tenant, h.kind, h.limits, h.limited_by,
             coalesce(h.weight, 1) + case when has_call_weights then coalesce((
               select k.call_weight from holdfast.kinds k
                where k.kind = h.kind and k.tenant in (h.tenant, '*') order by k.tenant = '*' limit 1), 0)
                                          else 0 end as charge
        from unnest(limits_in_force.candidates) with ordinality u (id, ord)
       cross join lateral (  -- offset 0: one by one and by primary key, whatever the statistics say
         select s.tenant, s.kind, s.limits, s.limited_by, s.weight from holdfast.steps s where s.id = u.id offset 0) h),
    alike as materialized (  -- names are looked up once for steps that have the same
      select s.tenant, s.limits, case when by_kind then s.kind end as kind, array_agg(s.ord) as ords
        from step s
       group by 1, 2, 3),
    named as (
      select a.ords, a.tenant, l.name from alike a, unnest(a.limits) l (name)
      union all
      select a.ords, a.tenant, 'queue:' || limits_in_force.queue from alike a where by_queue
      union all
      select a.ords, a.tenant, 'kind:' || a.kind from alike a where by_kind
      union all
      select a.ords, a.tenant, 'tenant:' || a.tenant from alike a where by_tenant),
    known as materialized (
      select n.name, n.tenant, g.tenant as rule_tenant, t.id
        from (select distinct d.name, d.tenant from named d) n
       cross join lateral (values (n.tenant), ('*')) g (tenant)
        left join holdfast.limit_states t on t.name = n.name and t.tenant = g.tenant
       where t.id is not null or exists (select from holdfast.limit_rule(n.name, g.tenant)))
    select p.ords, p.ids,
           case when exists (select from step s where s.charge <> 1)
                then array(select s.charge from step s order by s.ord) end,
           case when exists (select from step s where s.limited_by is not null)
                then array(select s.limited_by from step s order by s.ord) end,
           array(select k.name from known k where k.id is null order by k.name, k.rule_tenant),
           array(select k.rule_tenant from known k where k.id is null order by k.name, k.rule_tenant)
      into limits_in_force.ords, limits_in_force.limit_ids, limits_in_force.charges, limits_in_force.limited_by,
           new_names, new_tenants
      from (select array_agg(u.ord) as ords, array_agg(k.id) as ids
              from named n
              join known k on k.name = n.name and k.tenant = n.tenant
             cross join unnest(n.ords) u (ord)) p;
    exit when new_names = '{}';
    -- By name, and before any state is locked: who makes the same states meanwhile is waited for in one order.
    insert into holdfast.limit_states (name, tenant)
    select distinct u.name, u.tenant from unnest(new_names, new_tenants) u (name, tenant) order by 1, 2
    on conflict (name, tenant) do nothing;
  end loop;
end
$$;


--
-- Name: live_workers(text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.live_workers(queue text, kind text DEFAULT NULL::text, tenant text DEFAULT NULL::text) RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return (
    select count(*)
      from holdfast.workers w
     where w.queue = live_workers.queue and holdfast.is_live_worker(w.seen_at, clock)
       and (live_workers.kind is null or holdfast.matches_any(w.kinds, live_workers.kind))
       and (live_workers.tenant is null or holdfast.matches_any(w.tenants, live_workers.tenant))
       and (allowed is null or w.tenants is null or w.tenants && allowed));
end
$$;


--
-- Name: lock_held(bigint[], jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.lock_held(step_ids bigint[], others jsonb) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  ids constant bigint[] := lock_held.step_ids || array(
    select (o ->> 'step_id')::bigint from jsonb_array_elements(lock_held.others) o);
begin
  perform from holdfast.steps s where s.id = any (ids) order by s.id for update;
  perform from holdfast.limit_states t
    where t.id = any (array(
            select h.id from holdfast.steps s cross join unnest(s.holds) h (id) where s.id = any (ids)))
    order by t.id for update;
end
$$;


--
-- Name: lock_whole_runs(uuid[], timestamp with time zone[], boolean); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.lock_whole_runs(ids uuid[], ends timestamp with time zone[], is_large boolean) RETURNS uuid[]
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  locked constant uuid[] := array(
    select r.id
      from unnest(lock_whole_runs.ids, lock_whole_runs.ends) e (id, finished_at)
      join holdfast.runs r on r.id = e.id
       and r.finished_at = e.finished_at and r.moving is null and r.live = 0  -- guard: over
     order by r.id
       for update of r skip locked);
  own bigint[];
begin
  if not lock_whole_runs.is_large then
    own := array(select s.id
                   from holdfast.run_steps n join holdfast.steps s on s.id = n.step_id
                  where n.run_id = any (locked)
                    for update of s skip locked);
  end if;
  -- In a statement of its own: it sees what was committed before the runs were locked.
  return array(
    select u.id from unnest(locked) u (id)
     where (lock_whole_runs.is_large
            or not exists (select from holdfast.run_steps n join holdfast.steps s on s.id = n.step_id
                            where n.run_id = u.id
                              and not exists (select from unnest(own) o (id) where o.id = s.id)))
       and not holdfast.is_any_open(array[u.id::text])  -- guard: undoing
     order by u.id);
end
$$;


--
-- Name: lost_leases(bigint[], bigint[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.lost_leases(step_ids bigint[], lease_ids bigint[]) RETURNS TABLE(lease_id bigint, state text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  if cardinality(lost_leases.step_ids) is distinct from cardinality(lost_leases.lease_ids) then
    perform holdfast.refuse('RN005', 'step_ids and lease_ids must have the same length',
                            'pass one step_id per lease_id');
  end if;
  return query
  select u.lease_id, s.state
    from unnest(lost_leases.step_ids, lost_leases.lease_ids) u (step_id, lease_id)
    left join holdfast.steps s on s.id = u.step_id and holdfast.matches_any(allowed, s.tenant)
   where s.id is null or s.lease_id is distinct from u.lease_id;
end
$$;


--
-- Name: make_partitions(integer); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.make_partitions(ahead integer DEFAULT 13) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  first constant timestamp := date_trunc('month', holdfast.clock() at time zone 'UTC');
  month timestamp;
  parent text;
  child text;
  made int := 0;
begin
  -- One session at a time: the second finds the partitions made.
  perform pg_advisory_xact_lock(hashtextextended('holdfast.make_partitions', 0));
  foreach parent in array array['journal', 'notes'] loop
    for month in select generate_series(first, first + make_interval(months => make_partitions.ahead), '1 month') loop
      child := format('%s_%s', parent, to_char(month, 'YYYYMM'));
      -- Not to_regclass: its cached answer may be older than the lock.
      continue when exists (select from pg_tables t where t.schemaname = 'holdfast' and t.tablename = child);
      execute format('create table holdfast.%I (like holdfast.%I including defaults including constraints)',
                     child, parent);
      execute format('alter table holdfast.%I attach partition holdfast.%I for values from (%L) to (%L)',
                     parent, child, month at time zone 'UTC', (month + interval '1 month') at time zone 'UTC');
      execute format('create trigger stays_whole before truncate on holdfast.%I '
                     'execute function holdfast.refuse_change()', child);
      made := made + 1;
    end loop;
  end loop;
  return made;
end
$$;


--
-- Name: make_run(uuid, text, text, text, jsonb, jsonb, text, uuid); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.make_run(id uuid, machine text, name text, step_machine text, steps jsonb, input jsonb, tenant text, of_run uuid) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  insert into holdfast.runs (id, machine, name, state, tenant, of_run, created_at, input)
  values (make_run.id, make_run.machine, make_run.name,
          holdfast.initial_state(make_run.machine, 'run'), make_run.tenant,
          make_run.of_run, holdfast.clock(), coalesce(make_run.input, '{}'));
  if make_run.steps is distinct from '[]' then  -- a null plan goes on to add_steps, which refuses it
    perform holdfast.add_steps(make_run.id, make_run.step_machine, make_run.steps);
  end if;
end
$$;


--
-- Name: mark_asleep(text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.mark_asleep(worker text, queue text DEFAULT 'default'::text) RETURNS interval
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_sort TO 'off'
    SET jit TO 'off'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  tick constant interval := holdfast.next_tick_in(holdfast.allowed_tenants());
  soonest timestamptz;
begin
  perform holdfast.check_name('worker', mark_asleep.worker);
  perform holdfast.check_name('queue', mark_asleep.queue);
  update holdfast.workers w
     set is_asleep = true, seen_at = clock,
         state = case when w.state is not null then 'idle' end  -- a worker without a state does not report states
   where w.worker = mark_asleep.worker and w.queue = mark_asleep.queue
     and holdfast.is_own_worker(w.tenants, holdfast.allowed_tenants());
  for level in 0 .. 9 loop
    soonest := least(soonest, (
      select s.due_at from holdfast.steps s
       where s.queue = mark_asleep.queue and s.priority = level and s.due_at > clock
       order by s.due_at, s.id limit 1));
  end loop;
  soonest := least(soonest, (  -- any worker looks after any limit, whichever queues are parked on it
    select t.wake_at from holdfast.limit_states t where t.wake_at > clock order by t.wake_at limit 1));  -- guard: wake
  -- A tick that is due was locked by somebody, or the worker is of a release that fires none: it must not spin.
  return least(soonest - clock, case when tick > '0' then tick else tick + interval '500 ms' end);  -- guard: tick
end
$$;


--
-- Name: mark_resolved(holdfast.steps, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.mark_resolved(step holdfast.steps, reason text, actor text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if step.finished_at is null
     or not exists (select from holdfast.machine_states t
                     where t.machine = step.machine and t.state = step.state and t.outcome = 'failed') then
    return false;
  end if;
  insert into holdfast.resolutions (step_id, tenant, resolved_at, actor, login, reason)
  values (step.id, step.tenant, holdfast.clock(), mark_resolved.actor,
          case when mark_resolved.actor <> session_user then session_user end, mark_resolved.reason)
  on conflict do nothing;
  if not found then
    return false;
  end if;
  perform holdfast.note_change(array[step.id], 'resolved', '{}', mark_resolved.reason, mark_resolved.actor);
  return true;
end
$$;


--
-- Name: matches(text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.matches(wanted text, value text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT ((wanted IS NULL) OR (value = wanted));
END;


--
-- Name: matches_any(text[], text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.matches_any(wanted text[], value text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT ((wanted IS NULL) OR (value = ANY (wanted)));
END;


--
-- Name: measured_upkeep(text, jsonb, integer, integer); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.measured_upkeep(worker text, about jsonb DEFAULT NULL::jsonb, batch integer DEFAULT 1000, most integer DEFAULT 0) RETURNS TABLE(rescued bigint, moved bigint, partitions integer, exhausted jsonb, backlog jsonb)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  given_up bigint[];
  run record;
begin
  perform holdfast.check_name('worker', measured_upkeep.worker);
  perform holdfast.check_about(measured_upkeep.about);
  -- First: the moves below need a partition to be journaled in.
  measured_upkeep.partitions := case when holdfast.partitions_ahead() < interval '350 days'
                                     then holdfast.make_partitions() else 0 end;
  select count(*), array_agg(r.step_id) filter (where r.event = 'failed') into measured_upkeep.rescued, given_up
    from holdfast.expire_leases(measured_upkeep.batch, holdfast.clock()) r;
  measured_upkeep.moved := 0;
  for run in
    select r.id, r.moving from holdfast.runs r where r.moving is not null order by r.id limit 10 for update skip locked
  loop
    perform holdfast.set_actor('system', 'upkeep', 'the run was ' || run.moving);
    measured_upkeep.moved := measured_upkeep.moved + holdfast.move_run_steps(run.id, measured_upkeep.batch);
    perform holdfast.set_actor();
  end loop;
  -- Last and without waiting: a claim of the same worker locks its row first, then waits for runs locked here.
  update holdfast.workers w
     set seen_at = holdfast.clock(), state = coalesce(measured_upkeep.about ->> 'state', w.state),
         about = coalesce(measured_upkeep.about, w.about)
   where w.worker = measured_upkeep.worker and holdfast.is_own_worker(w.tenants, allowed)
     and w.queue = any (array(
           select o.queue from holdfast.workers o where o.worker = measured_upkeep.worker for update skip locked));
  delete from holdfast.workers w where w.seen_at < holdfast.clock() - interval '1 day';
  delete from holdfast.reserved_ids r where r.reserved_at < holdfast.clock() - interval '1 day';
  perform holdfast.forget_idle_limits(measured_upkeep.batch);
  measured_upkeep.exhausted := coalesce(
    (select jsonb_object_agg(k.kind, k.steps)
       from (select s.kind, count(*) as steps
               from holdfast.steps s
              where s.id = any (given_up) and holdfast.matches_any(allowed, s.tenant)
              group by s.kind) k), '{}');
  measured_upkeep.backlog := coalesce(
    (select jsonb_object_agg(w.queue, holdfast.backlog(w.queue, measured_upkeep.most))
       from holdfast.workers w
      where w.worker = measured_upkeep.worker and measured_upkeep.most > 0), '{}');
  return next;
end
$$;


--
-- Name: microseconds(timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.microseconds(at timestamp with time zone) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT ((EXTRACT(epoch FROM at) * (1000000)::numeric))::bigint AS int8;
END;


--
-- Name: move_run_steps(uuid, integer); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.move_run_steps(run_id uuid, batch integer) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  run holdfast.runs;
  seen bigint[];
  moves holdfast.step_move[];
  moved int;
begin
  select r.* into strict run from holdfast.runs r where r.id = move_run_steps.run_id;
  seen := array(select r.step_id from holdfast.run_steps r
                 where r.run_id = run.id and r.step_id > run.moved_until
                 order by r.step_id
                 limit move_run_steps.batch);
  select coalesce(array_agg((s.id, s.lease_id, run.moving, clock, null, null, null)::holdfast.step_move), '{}')
    into moves
    from unnest(seen) u (id)
   cross join lateral (  -- offset 0: one by one and by primary key, whatever the statistics say
     select h.* from holdfast.steps h where h.id = u.id offset 0) s
    join holdfast.machine_moves m on m.machine = s.machine and m.from_state = s.state and m.event = run.moving
   where (s.finished_at is not null) = (run.moving = 'reopened');
  select count(*) into moved from holdfast.move_steps(moves);
  if moved < cardinality(moves) then
    return moved;  -- one was claimed or settled in between: read these again
  end if;
  if cardinality(seen) = move_run_steps.batch then
    update holdfast.runs r set moved_until = seen[move_run_steps.batch] where r.id = run.id;
    return moved;
  end if;
  update holdfast.runs r set moving = null, moved_until = 0 where r.id = run.id;
  perform holdfast.close_runs(
    array(select r.id from holdfast.runs r where r.id = run.id and r.live = 0 and r.finished_at is null), clock);
  return moved;
end
$$;


--
-- Name: move_runs(uuid[], text, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.move_runs(ids uuid[], event text, clock timestamp with time zone) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  moved int;
begin
  update holdfast.runs r
     set state = g.to_state, last_event = 'started', started_at = coalesce(r.started_at, move_runs.clock)
    from holdfast.machine_moves g, holdfast.machine_moves m
   where r.id = any (move_runs.ids)
     and g.machine = r.machine and g.from_state = r.state and g.event = 'started'
     and m.machine = r.machine and m.from_state = g.to_state and m.event = move_runs.event
     and not exists (select from holdfast.machine_moves d
                      where d.machine = r.machine and d.from_state = r.state and d.event = move_runs.event);
  update holdfast.runs r
     set state = m.to_state, last_event = m.event,
         finished_at = case when t.phase in ('over', 'open_or_over') then move_runs.clock end,
         started_at = case when m.event = 'reopened' then null else r.started_at end
    from holdfast.machine_moves m join holdfast.machine_states t on t.machine = m.machine and t.state = m.to_state
   where r.id = any (move_runs.ids)
     and m.machine = r.machine and m.from_state = r.state and m.event = move_runs.event;
  get diagnostics moved = row_count;
  return moved;
end
$$;


--
-- Name: move_steps(holdfast.step_move[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.move_steps(moves holdfast.step_move[], clock timestamp with time zone DEFAULT holdfast.clock()) RETURNS SETOF holdfast.settled_step
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_hashjoin TO 'on'
    SET enable_nestloop TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  deltas holdfast.run_delta[];
  parents bigint[];
  moved holdfast.settled_step[];
begin
  perform holdfast.start_silent_steps(move_steps.moves);
  with before as materialized (
    select v.*, s.run_id, s.was_live, m.to_state, t.phase, t.outcome,
           case when s.finished_at is not null then f.outcome end as was_outcome,
           t.phase = 'over' or (t.phase = 'open_or_over' and v.event not in ('retried', 'expired')) as is_over
      from (select * from unnest(move_steps.moves) order by step_id) v
     cross join lateral (
       select h.*, holdfast.is_live(h) as was_live from holdfast.steps h
        where h.id = v.step_id
          and h.lease_id is not distinct from v.lease_id  -- guard: lease
          for update) s
      join holdfast.machine_moves m on m.machine = s.machine and m.from_state = s.state and m.event = v.event
      join holdfast.machine_states t on t.machine = m.machine and t.state = m.to_state
      join holdfast.machine_states f on f.machine = m.machine and f.state = m.from_state),
  after as (
    update holdfast.steps s
       set state = b.to_state, last_event = b.event,
           lease_id = case when b.phase = 'held' then s.lease_id end,
           lease_owner = case when b.phase = 'held' then s.lease_owner end,
           lease_until = case when b.phase = 'held' then s.lease_until end,
           due_at = case when not b.is_over and b.phase <> 'held' and s.waits = 0 then b.due_at end,
           finished_at = case when b.is_over then move_steps.clock end,
           parked_due_at = null, parked_for = null, limited_by = null,
           failures = case when b.event in ('retried', 'failed', 'expired') then
                             s.failures + 1  -- guard: failures
                           when b.event in ('continued', 'reopened') then 0  -- guard: fresh-budget
                           else s.failures end,
           failed_at = case when b.event in ('retried', 'failed', 'expired') then move_steps.clock else s.failed_at end,
           cursor = case when b.event = 'continued' then b.cursor else s.cursor end,
           result = case when b.event = 'succeeded' or (b.event = 'resolved' and b.result is not null)
             then b.result else s.result end,
           error = case when b.event in ('retried', 'failed', 'expired') then b.error
                        when b.event <> 'succeeded' then s.error end
      from before b
     where s.id = b.step_id and s.id = any (array(select b.step_id from before b))
    returning s.id, s.run_id, s.state, b.event, b.was_live, b.was_outcome, b.is_over, b.outcome,
      holdfast.is_live(s) as is_live)
  select array_agg((a.id, a.event, a.state)::holdfast.settled_step),
         array_agg(a.id) filter (
           where a.is_over and holdfast.is_success(a.outcome) and holdfast.is_success(a.was_outcome) is not true
             and a.run_id is not null),
         array_agg((a.run_id, 0, a.is_live::int - a.was_live::int,
                    (a.is_over and holdfast.is_success(a.outcome))::int
                      - coalesce(holdfast.is_success(a.was_outcome), false)::int,
                    (a.is_over and a.outcome = 'failed')::int - coalesce(a.was_outcome = 'failed', false)::int,
                    (a.is_over and a.outcome = 'cancelled')::int - coalesce(a.was_outcome = 'cancelled', false)::int
                   )::holdfast.run_delta) filter (where a.run_id is not null)
    into moved, parents, deltas
    from after a;
  if deltas is not null then
    if parents is not null then
      deltas := deltas || holdfast.admit_children(parents, move_steps.clock);
    end if;
    perform holdfast.tally_runs(deltas, move_steps.clock);
  end if;
  return query select m.* from unnest(moved) m;
end
$$;


--
-- Name: namesakes(text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.namesakes(worker text) RETURNS SETOF text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
begin
  perform holdfast.check_name('worker', namesakes.worker);
  return query
  select distinct w.worker
    from holdfast.workers w
   where regexp_replace(w.worker, '/[^/]*$', '') = regexp_replace(namesakes.worker, '/[^/]*$', '')
     and w.worker <> namesakes.worker and holdfast.worker_standing(w.seen_at, clock) = 'alive'
     and holdfast.is_own_worker(w.tenants, allowed);
end
$_$;


--
-- Name: narrow_tenants(text[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.narrow_tenants(asked text[]) RETURNS text[]
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  if narrow_tenants.asked is null or allowed is null then
    return coalesce(narrow_tenants.asked, allowed);
  end if;
  return array(select unnest(narrow_tenants.asked) intersect select unnest(allowed));
end
$$;


--
-- Name: narrow_to_setting(text[], text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.narrow_to_setting(tenants text[], setting text) RETURNS text[]
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  named text[];
begin
  begin
    named := narrow_to_setting.setting::text[];
  exception when invalid_text_representation then
    named := array[null];
  end;
  if array_ndims(named) > 1
     or exists (select from unnest(named) n (name) where holdfast.is_name(n.name) is not true) then
    perform holdfast.refuse(
      'RN005', format('holdfast.tenants must be an array of tenants, got %s',
                      to_json(left(narrow_to_setting.setting, 50))),
      'write it as in {a,b}: select set_config(''holdfast.tenants'', array[''a'', ''b'']::text, true)');
  end if;
  if narrow_to_setting.tenants is null then
    return named;
  end if;
  return array(select unnest(named) intersect select unnest(narrow_to_setting.tenants));
end
$$;


--
-- Name: next_tick_in(text[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.next_tick_in(allowed text[]) RETURNS interval
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
declare
  soonest constant timestamptz := (
    select s.wake_at from holdfast.schedules s
     where s.wake_at is not null and holdfast.matches_any(next_tick_in.allowed, s.tenant)
     order by s.wake_at
     limit 1);
begin
  return case when soonest is not null then greatest(interval '0', soonest - holdfast.clock()) end;
end
$$;


--
-- Name: note(bigint, bigint, text, text, jsonb, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.note(step_id bigint, lease_id bigint, level text DEFAULT 'info'::text, message text DEFAULT ''::text, payload jsonb DEFAULT '{}'::jsonb, key text DEFAULT NULL::text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  step holdfast.steps;
begin
  perform holdfast.check_note(note.level, note.message, note.payload, note.key);
  -- Locked, so that a rescue at the same time comes before or after this note.
  select s.* into step from holdfast.steps s
   where s.id = note.step_id
     and s.lease_id = note.lease_id  -- guard: lease
     for update;
  if step.id is null
     or not holdfast.matches_any(allowed, step.tenant)  -- guard: tenant
  then
    perform holdfast.refuse('RN002', format('step %s is not held under lease %s', note.step_id, note.lease_id),
                            'stop working on it: another worker has it, or it is over');
  end if;
  perform holdfast.set_actor('worker', step.lease_owner);
  update holdfast.steps s
     set state = m.to_state, last_event = 'started'
    from holdfast.machine_moves m
   where s.id = step.id and m.machine = s.machine and m.from_state = s.state and m.event = 'started';
  perform holdfast.set_actor();
  return holdfast.write_note(step, note.level, note.message, note.payload, note.key, clock);
end
$$;


--
-- Name: note_change(bigint[], text, jsonb, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.note_change(ids bigint[], what text, payload jsonb, reason text DEFAULT NULL::text, actor text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  name constant text := coalesce(note_change.actor, session_user);
begin
  perform holdfast.check_reason(note_change.reason);
  perform holdfast.check_name('actor', note_change.actor);
  insert into holdfast.notes (at, tenant, step_id, run_id, attempt, lease_id, level, message, payload)
  select clock, s.tenant, s.id, s.run_id, s.attempt, s.lease_id, 'info',
         format('%s by %s%s', note_change.what, name, ': ' || note_change.reason),
         jsonb_strip_nulls(note_change.payload || jsonb_build_object(
           'actor', name, 'login', case when name <> session_user then session_user end, 'reason', note_change.reason))
    from holdfast.steps s
   where s.id = any (note_change.ids)
   order by s.id;
end
$$;


--
-- Name: note_schedule(text, text, text, text, text, text, jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.note_schedule(tenant text, name text, event text, actor_kind text, actor text, reason text, payload jsonb DEFAULT '{}'::jsonb) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  insert into holdfast.schedule_changes (at, tenant, name, event, actor_kind, actor, login, reason, payload)
  values (holdfast.clock(), note_schedule.tenant, note_schedule.name, note_schedule.event, note_schedule.actor_kind,
          coalesce(note_schedule.actor, session_user),
          case when note_schedule.actor_kind = 'user' and note_schedule.actor <> session_user then session_user end,
          note_schedule.reason, note_schedule.payload);
end
$$;


--
-- Name: of_ended_runs(bigint[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.of_ended_runs(ids bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  return array(
    select s.id
      from holdfast.steps s
      join lateral (select r.finished_at from holdfast.runs r where r.id = s.run_id offset 0) r on true
     where s.id = any (of_ended_runs.ids) and s.run_id is not null and r.finished_at is not null);
end
$$;


--
-- Name: old_months(timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.old_months(clock timestamp with time zone) RETURNS text[]
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  select array(
    select c.relname::text
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
     cross join holdfast.history_rule('journal') r
     where i.inhparent in ('holdfast.journal'::regclass, 'holdfast.notes'::regclass)
       -- Its last moment is the end of the month, by UTC.
       and (to_timestamp(right(c.relname, 6), 'YYYYMM')::timestamp + interval '1 month') at time zone 'UTC'
           <= old_months.clock - r.keep
     order by right(c.relname, 6), c.relname)
$$;


--
-- Name: outside_names(jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.outside_names(steps jsonb) RETURNS text[]
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT COALESCE(array_agg(u.name), '{}'::text[]) AS "coalesce"
    FROM ( SELECT a.name
            FROM jsonb_array_elements(outside_names.steps) p(value),
             LATERAL jsonb_array_elements_text(COALESCE(NULLIF((p.value -> 'after'::text), 'null'::jsonb), '[]'::jsonb)) a(name)
         EXCEPT
          SELECT (q.value ->> 'name'::text)
            FROM jsonb_array_elements(outside_names.steps) q(value)
           WHERE ((q.value ->> 'name'::text) IS NOT NULL)) u;
END;


--
-- Name: park_steps(bigint[], text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.park_steps(ids bigint[], parked_for text, reason text DEFAULT NULL::text, actor text DEFAULT NULL::text) RETURNS SETOF bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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


--
-- Name: park_unmovable_due(bigint[], text, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.park_unmovable_due(candidates bigint[], event text, clock timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  with aside as (
    update holdfast.steps s
       set due_at = null, parked_due_at = coalesce(s.due_at, s.parked_due_at), parked_for = 'move', limited_by = null
     where s.id = any (park_unmovable_due.candidates)
       and (s.due_at + interval '0' is not null or coalesce(s.parked_for, '') = 'limit')
    returning s.*)
  insert into holdfast.notes (at, tenant, step_id, run_id, attempt, level, message, payload)
  select park_unmovable_due.clock, a.tenant, a.id, a.run_id, a.attempt, 'error',
         format('machine %s has no move %s from state %s: the step is parked',
                a.machine, park_unmovable_due.event, a.state),
         jsonb_build_object('machine', a.machine, 'state', a.state, 'event', park_unmovable_due.event)
    from aside a;
end
$$;


--
-- Name: park_unmovable_held(holdfast.step_move[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.park_unmovable_held(moves holdfast.step_move[], clock timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  with aside as (
    update holdfast.steps s
       set lease_until = park_unmovable_held.clock + interval '100 years',  -- not infinity: Python cannot represent it
           parked_for = 'move'
      from unnest(park_unmovable_held.moves) m
     where s.id = m.step_id and s.lease_id = m.lease_id
    returning s.*, m.event as missing)
  insert into holdfast.notes (at, tenant, step_id, run_id, attempt, lease_id, level, message, payload)
  select park_unmovable_held.clock, a.tenant, a.id, a.run_id, a.attempt, a.lease_id, 'error',
         format('machine %s has no move %s from state %s: the step is parked', a.machine, a.missing, a.state),
         jsonb_build_object('machine', a.machine, 'state', a.state, 'event', a.missing)
    from aside a;
end
$$;


--
-- Name: park_unserved(text, bigint[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.park_unserved(queue text, candidates bigint[], clock timestamp with time zone) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  parked int;
begin
  update holdfast.steps s
     set due_at = null, parked_due_at = coalesce(s.due_at, s.parked_due_at), parked_for = 'handler', limited_by = null
   where s.id = any (array(
           select c.id from holdfast.steps c
            where c.id = any (park_unserved.candidates)
              -- not `due_at is not null`: the planner would use the index of due steps
              and (c.due_at + interval '0' is not null or coalesce(c.parked_for, '') = 'limit')
              and not exists (select from holdfast.workers w
                               where w.queue = park_unserved.queue
                                 and holdfast.is_live_worker(w.seen_at, park_unserved.clock)
                                 and holdfast.matches_any(w.kinds, c.kind)
                                 and holdfast.matches_any(w.tenants, c.tenant)
                                 and holdfast.matches(w.machine, c.machine))
              for update skip locked));
  get diagnostics parked = row_count;
  return parked;
end
$$;


--
-- Name: parked_queues(bigint); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.parked_queues(limit_id bigint) RETURNS TABLE(queue text, charge numeric)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_sort TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
begin
  return query
  with recursive parked as (
    (select p.queue
       from holdfast.steps p
      where p.limited_by = parked_queues.limit_id and coalesce(p.parked_for, '') = 'limit'
      order by p.queue
      limit 1)
    union all
    select n.queue
      from parked b
     cross join lateral (
       select p.queue
         from holdfast.steps p
        where p.limited_by = parked_queues.limit_id and p.queue > b.queue and coalesce(p.parked_for, '') = 'limit'
        order by p.queue
        limit 1) n)
  select b.queue, coalesce(h.charge, 1)::numeric
    from parked b
   cross join lateral (
     select p.charge
       from holdfast.steps p
      where p.limited_by = parked_queues.limit_id and p.queue = b.queue and coalesce(p.parked_for, '') = 'limit'
      order by p.priority desc, p.parked_due_at, p.id
      limit 1) h;
end
$$;


--
-- Name: partitions_ahead(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.partitions_ahead() RETURNS interval
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  select max(to_timestamp(right(c.relname, 6), 'YYYYMM') + interval '1 month') - holdfast.clock()
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
   where i.inhparent = 'holdfast.journal'::regclass;
$$;


--
-- Name: pause_for_outcomes(jsonb, bigint[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.pause_for_outcomes(outcomes jsonb, settled bigint[], clock timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  wanted record;
  limit_ids bigint[] := '{}';
begin
  for wanted in
    select t.name, t.tenant, max(pause_for_outcomes.clock + greatest('0', least(w.retry_after, w.longest))) as until,
           (array_agg(w.owner order by w.retry_after desc))[1] as owner,
           (array_agg(w.reason order by w.retry_after desc))[1] as reason
      from (select o.pause, coalesce(o.retry_after, s.due_at - pause_for_outcomes.clock) as retry_after, s.tenant,
                   s.holds, p.longest_retry_after as longest,
                   o.error ->> 'type' = 'RateLimited' and o.retry_after is not null as is_limited,
                   coalesce(nullif(current_setting('holdfast.actor', true), ''), session_user) as owner,
                   left(holdfast.error_text(o.error), 200) as reason
              from jsonb_to_recordset(pause_for_outcomes.outcomes) o (
                     step_id bigint, outcome text, pause text, retry_after interval, error jsonb)
              join holdfast.steps s on s.id = o.step_id
             cross join lateral holdfast.step_policy(s.policy, s.kind, s.machine, s.tenant) p
             where s.id = any (pause_for_outcomes.settled) and o.outcome in ('retry', 'snooze')
               and (o.pause is not null or (o.error ->> 'type' = 'RateLimited' and o.retry_after is not null))) w
     cross join lateral (
       select w.pause as name, w.tenant where w.pause is not null
       union
       select h.name, h.tenant
         from holdfast.limit_states h
         left join lateral holdfast.limit_rule(h.name, h.tenant) r on true
        where h.id = any (w.holds)
          and (h.name = w.pause or (w.is_limited and num_nonnulls(r.rate, r.breaker_after) > 0))) t
     where (t.tenant = w.tenant or t.tenant = '*') and w.retry_after is not null
     group by t.name, t.tenant
     order by t.name, t.tenant
  loop
    -- A name that only rules for all tenants have is not made a limit of the tenant's own.
    continue when wanted.tenant <> '*'
              and exists (select from holdfast.limit_rule(wanted.name, '*'))
              and not exists (select from holdfast.limit_rule(wanted.name, wanted.tenant));
    insert into holdfast.limit_states (name, tenant) values (wanted.name, wanted.tenant)
    on conflict on constraint limit_states_name_tenant_key do nothing;
    with paused as (
      update holdfast.limit_states h
         set paused_until = wanted.until, paused_by = wanted.owner, pause_reason = wanted.reason
       where h.name = wanted.name and h.tenant = wanted.tenant
         and coalesce(h.paused_until < wanted.until, true)  -- guard: longer
      returning h.id, h.name, h.tenant)
    select limit_ids || array_agg(p.id) into limit_ids from paused p;
    insert into holdfast.limit_changes (at, tenant, name, event, actor_kind, actor, reason, payload)
    select pause_for_outcomes.clock, h.tenant, h.name, 'paused', 'worker', wanted.owner, wanted.reason,
           jsonb_build_object('until', wanted.until)
      from holdfast.limit_states h
     where h.name = wanted.name and h.tenant = wanted.tenant and h.id = limit_ids[cardinality(limit_ids)];
  end loop;
  perform holdfast.refresh_limits(limit_ids, pause_for_outcomes.clock);
end
$$;


--
-- Name: pause_limit(text, timestamp with time zone, text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.pause_limit(name text, until timestamp with time zone DEFAULT NULL::timestamp with time zone, reason text DEFAULT NULL::text, tenant text DEFAULT NULL::text, actor text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  tenants constant text[] := holdfast.limit_tenants(pause_limit.tenant, format('limit %s', pause_limit.name));
begin
  perform holdfast.check_limit_name(pause_limit.name);
  perform holdfast.check_reason(pause_limit.reason);
  perform holdfast.check_name('actor', pause_limit.actor);
  if pause_limit.until <= clock then
    perform holdfast.refuse('RN005', format('a pause until %s is over already', pause_limit.until),
                            'give a later time, or none', 'until');
  end if;
  perform holdfast.check_due(nullif(pause_limit.until, 'infinity'));
  perform holdfast.set_pause(pause_limit.name, tenants, coalesce(pause_limit.until, 'infinity'),
                             coalesce(pause_limit.actor, session_user), pause_limit.reason);
  insert into holdfast.limit_changes (at, tenant, name, event, actor_kind, actor, login, reason, payload)
  select clock, u.tenant, pause_limit.name, 'paused', 'user', coalesce(pause_limit.actor, session_user),
         case when pause_limit.actor <> session_user then session_user end, pause_limit.reason,
         jsonb_strip_nulls(jsonb_build_object('until', pause_limit.until))
    from unnest(tenants) u (tenant);
end
$$;


--
-- Name: pause_queue(text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.pause_queue(queue text, reason text DEFAULT NULL::text, actor text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
begin
  perform holdfast.check_name('queue', pause_queue.queue);
  perform holdfast.check_reason(pause_queue.reason);
  perform holdfast.check_name('actor', pause_queue.actor);
  perform holdfast.check_all_tenants('pause_queue');  -- all tenants share a queue
  update holdfast.queues q
     set paused_at = coalesce(q.paused_at, clock), paused_by = coalesce(pause_queue.actor, session_user),
         pause_reason = pause_queue.reason
   where q.queue = pause_queue.queue;
  if not found then
    perform holdfast.refuse('RN004', format('there is no queue %s', pause_queue.queue),
                            '`holdfast queues list` shows them; a first start makes a queue', pause_queue.queue);
  end if;
  insert into holdfast.queue_pauses (at, queue, event, actor, login, reason)
  values (clock, pause_queue.queue, 'paused', coalesce(pause_queue.actor, session_user),
          case when pause_queue.actor <> session_user then session_user end, pause_queue.reason);
end
$$;


--
-- Name: pause_schedule(text, text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.pause_schedule(name text, reason text DEFAULT NULL::text, tenant text DEFAULT 'default'::text, actor text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  schedule constant holdfast.schedules := holdfast.schedule_to_change(
    pause_schedule.name, pause_schedule.tenant, pause_schedule.reason, pause_schedule.actor);
begin
  update holdfast.schedules s
     set paused_at = coalesce(s.paused_at, holdfast.clock()), paused_by = coalesce(pause_schedule.actor, session_user),
         pause_reason = pause_schedule.reason, wake_at = null
   where s.id = schedule.id;
  perform holdfast.note_schedule(schedule.tenant, schedule.name, 'paused', 'user', pause_schedule.actor,
                                 pause_schedule.reason);
end
$$;


--
-- Name: pick_admitted(text, text, integer, text[], text[], text, integer, timestamp with time zone, integer); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.pick_admitted(worker text, queue text, priority integer, kinds text[], tenants text[], machine text, wanted integer, clock timestamp with time zone, free integer DEFAULT NULL::integer) RETURNS holdfast.admission
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  answer holdfast.admission;
  turn holdfast.admission;
  pulled bigint[];
  fresh bigint[];
  ended bigint[];
  taken bigint[];
  pending bigint[] := '{}';
  missing int := pick_admitted.wanted;
  pick holdfast.pick;
  has_runs boolean := false;
begin
  answer.ids := '{}';
  answer.holds := '{}';
  answer.charges := '{}';
  answer.left_ids := '{}';
  answer.ended_ids := '{}';
  answer.tight := 0;
  answer.full_ids := '{}';
  answer.at := pick_admitted.clock;
  for round in 1 .. 20 loop
    taken := answer.ids || answer.left_ids || answer.ended_ids;
    pulled := holdfast.pull_parked(
      pick_admitted.queue, pick_admitted.priority, pick_admitted.kinds, pick_admitted.tenants, pick_admitted.machine,
      missing, answer.full_ids, taken, pick_admitted.clock);
    pick := null;
    if cardinality(pulled) < missing then
      pick := holdfast.pick_steps(
        pick_admitted.worker, pick_admitted.queue, pick_admitted.priority, pick_admitted.kinds, pick_admitted.tenants,
        pick_admitted.machine,
        case when round = 1 then missing - cardinality(pulled) else greatest(1000, 2 * missing) end,
        pick_admitted.clock, taken);
    end if;
    fresh := pulled || coalesce(pick.ids, '{}');
    exit when fresh = '{}';
    ended := '{}';
    if pulled <> '{}' or pick.run_ids <> '{}' then
      has_runs := true;
      ended := holdfast.of_ended_runs(fresh);
    end if;
    if ended <> '{}' then
      answer.ended_ids := answer.ended_ids || ended;
      fresh := array(select u.id from unnest(fresh) with ordinality u (id, place)
                      where u.id <> all (ended) order by u.place);
      continue when fresh = '{}';
    end if;
    turn := holdfast.admit_steps(
      pick_admitted.queue, pick_admitted.priority, fresh, missing, pending,
      coalesce(current_setting('holdfast.has_limits', true), '') <> 'yes', pick_admitted.free - answer.tight);
    perform set_config('holdfast.has_limits', 'yes', true);
    if answer.ids = '{}' then
      answer.shared := turn.shared;
    elsif turn.ids <> '{}' then  -- no longer the same for all
      answer.holds := answer.holds
        || coalesce((select jsonb_object_agg(u.id, answer.shared::text) from unnest(answer.ids) u (id)
                      where answer.shared is not null), '{}')
        || coalesce((select jsonb_object_agg(u.id, turn.shared::text) from unnest(turn.ids) u (id)
                      where turn.shared is not null), '{}');
      answer.shared := null;
    end if;
    answer.holds := answer.holds || coalesce(turn.holds, '{}');
    answer.ids := answer.ids || turn.ids;
    answer.charges := answer.charges || coalesce(turn.charges, '{}');
    answer.full_ids := answer.full_ids || turn.full_ids;
    answer.left_ids := answer.left_ids || turn.left_ids;
    answer.at := turn.at;
    pending := pending || turn.pending;
    missing := missing - cardinality(turn.ids);
    answer.tight := answer.tight + coalesce(turn.tight, 0);
    exit when missing <= 0 or (pick_admitted.free <= answer.tight and turn.left_ids <> '{}')
           or (turn.refused = 0 and turn.left_ids = '{}' and pulled = '{}');
  end loop;
  if answer.left_ids <> '{}' then
    perform set_config('holdfast.position', '', false);  -- they are before it, and to be seen by the next claim
  end if;
  if not has_runs then
    answer.ended_ids := null;
  end if;
  return answer;
end
$$;


--
-- Name: pick_served(text, integer, text[], text[], text, integer, timestamp with time zone, holdfast.due_position); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.pick_served(queue text, priority integer, kinds text[], tenants text[], machine text, wanted integer, clock timestamp with time zone, after holdfast.due_position, OUT picked bigint[], OUT reached holdfast.due_position) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  size constant int := greatest(1000, 2 * pick_served.wanted);
  seen bigint[];
  last_due timestamptz;
begin
  picked := '{}';
  reached := pick_served.after;
  for _ in 1 .. 20 loop
    select array_agg(w.id), max(w.due_at) into seen, last_due
      from (select d.id, d.due_at
              from holdfast.steps d
             where d.queue = pick_served.queue and d.priority = pick_served.priority
               and holdfast.is_due(d, pick_served.clock)
               and (d.due_at, d.id) > (reached.due_at, reached.id)
             order by d.due_at, d.id
             limit size) w;
    exit when seen is null;
    picked := picked || array(
      select d.id
        from holdfast.steps d
       where d.id = any (seen)
         and holdfast.is_due(d, pick_served.clock) is true  -- not bare: the planner would use the index of due steps
         and holdfast.matches_any(pick_served.kinds, d.kind)
         and holdfast.matches_any(pick_served.tenants, d.tenant)
         and holdfast.matches(pick_served.machine, d.machine)
       order by d.due_at, d.id
       limit pick_served.wanted - cardinality(picked)
         for update skip locked);
    exit when cardinality(picked) >= pick_served.wanted;
    perform holdfast.park_unserved(pick_served.queue, seen, pick_served.clock);
    reached := (last_due, seen[cardinality(seen)]);
    exit when cardinality(seen) < size;
  end loop;
end
$$;


--
-- Name: pick_steps(text, text, integer, text[], text[], text, integer, timestamp with time zone, bigint[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.pick_steps(worker text, queue text, priority integer, kinds text[], tenants text[], machine text, wanted integer, clock timestamp with time zone, taken bigint[] DEFAULT '{}'::bigint[]) RETURNS holdfast.pick
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  place constant text := format('%s %s %s', pick_steps.worker, pick_steps.queue, pick_steps.priority);
  after holdfast.due_position := holdfast.position_of(place, pick_steps.clock);
  seen int;
  passed bigint[];
  last holdfast.due_position;
  pick holdfast.pick;
begin
  loop
    -- No distinct aggregate: it would sort the rows, and the next claim continues after the last of them.
    select coalesce(array_agg(p.id) filter (where p.is_served), '{}'), array_agg(p.id) filter (where not p.is_served),
           coalesce(array_agg(p.run_id) filter (where p.is_served and p.run_id is not null), '{}'),
           count(*), max(p.due_at), (array_agg(p.id))[count(*)]
      into pick.ids, passed, pick.run_ids, seen, last.due_at, last.id
      from (select d.id, d.run_id, d.due_at,
                   holdfast.matches_any(pick_steps.kinds, d.kind)
                   and holdfast.matches_any(pick_steps.tenants, d.tenant)
                   and holdfast.matches(pick_steps.machine, d.machine) as is_served
              from holdfast.steps d
             where d.queue = pick_steps.queue and d.priority = pick_steps.priority
               and holdfast.is_due(d, pick_steps.clock)  -- guard: due
               and (d.due_at, d.id) > (after.due_at, after.id)
               and d.id <> all (pick_steps.taken)
             order by d.due_at, d.id
             limit pick_steps.wanted
               for update skip locked  -- guard: lock
           ) p;
    exit when seen = pick_steps.wanted or after.id = 0;
    after := holdfast.position_of(null, pick_steps.clock);
  end loop;
  if passed is not null then
    perform holdfast.park_unserved(pick_steps.queue, passed, pick_steps.clock);
    if seen = pick_steps.wanted then
      select pick.ids || array(select u.id from unnest(s.picked) u (id) where u.id <> all (pick_steps.taken)),
             (s.reached).due_at, (s.reached).id into pick.ids, last.due_at, last.id
        from holdfast.pick_served(pick_steps.queue, pick_steps.priority, pick_steps.kinds, pick_steps.tenants,
                                  pick_steps.machine, pick_steps.wanted - cardinality(pick.ids),
                                    pick_steps.clock, last) s;
      pick.run_ids := array(select distinct s.run_id from holdfast.steps s
                             where s.id = any (pick.ids) and s.run_id is not null);
    end if;
  end if;
  if seen = pick_steps.wanted then
    perform holdfast.remember_position(place, last, pick_steps.clock);
  end if;
  return pick;
end
$$;


--
-- Name: place_of(uuid); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.place_of(run_id uuid) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT ((('x'::text || lpad("left"(replace((run_id)::text, '-'::text, ''::text), 12), 16, '0'::text)))::bit(64))::bigint AS int8;
END;


--
-- Name: plan_by_interval(holdfast.schedules, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.plan_by_interval(schedule holdfast.schedules, clock timestamp with time zone) RETURNS holdfast.schedules
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  last_planned constant timestamptz := schedule.upcoming[cardinality(schedule.upcoming)];
  after constant timestamptz := coalesce(last_planned, schedule.after_at);  -- guard: after
  step constant interval := make_interval(secs => extract(epoch from schedule.every)::double precision);
  passed bigint;
  dropped bigint := 0;
begin
  if schedule.at is not null then
    return holdfast.with_ticks(schedule, case when after < schedule.at then array[schedule.at] end, true);
  end if;
  passed := greatest(0, floor(extract(epoch from least(plan_by_interval.clock, schedule.ends_at) - after)
                              / extract(epoch from step)));
  if passed > 1000 then
    dropped := passed - 1000;
    perform holdfast.record_missed(schedule, array[after + step], dropped::int, after + step * dropped,
                                   plan_by_interval.clock);
  end if;
  return holdfast.with_ticks(
    schedule, array(select after + step * n from generate_series(dropped + 1, passed + 20) n), false);
end
$$;


--
-- Name: plan_schedules(jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.plan_schedules(plans jsonb) RETURNS interval
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  epoch constant timestamptz := 'epoch';
  unit constant interval := '1 microsecond';
  plan jsonb;
  schedule holdfast.schedules;
  ticks timestamptz[];
begin
  if jsonb_typeof(plan_schedules.plans) is distinct from 'array' then
    perform holdfast.refuse('RN005', 'plans must be an array', 'pass what was computed for fire_schedules', 'plans');
  end if;
  for plan in select p from jsonb_array_elements(plan_schedules.plans) p order by (p ->> 'id')::bigint loop
    select s.* into schedule from holdfast.schedules s
     where s.id = (plan ->> 'id')::bigint and holdfast.matches_any(allowed, s.tenant) and s.cron is not null
       and num_nonnulls(s.ended_at, s.broken) = 0
       for update;
    continue when not found or schedule.version <> (plan ->> 'version')::int  -- guard: version
      or coalesce(schedule.upcoming[cardinality(schedule.upcoming)], schedule.after_at)
         <> epoch + (plan ->> 'after')::bigint * unit;  -- guard: planned
    if plan ->> 'broken' is not null then
      update holdfast.schedules s
         set broken = left(plan ->> 'broken', 1000), upcoming = '{}', next_at = null, wake_at = null
       where s.id = schedule.id;
      perform holdfast.note_schedule(schedule.tenant, schedule.name, 'broken', 'scheduler', 'scheduler',
                                     left(plan ->> 'broken', 1000));
      continue;
    end if;
    ticks := array(select epoch + t.at::bigint * unit from jsonb_array_elements_text(plan -> 'ticks') t (at));
    if (select bool_or(t.at <= coalesce(t.before, epoch + (plan ->> 'after')::bigint * unit)) is not false
          from (select u.at, lag(u.at) over (order by u.n) as before
                  from unnest(ticks) with ordinality u (at, n)) t) then
      perform holdfast.refuse('RN005', format('the ticks of schedule %s do not ascend', schedule.name),
                              'compute them from `after` on', 'ticks');
    end if;
    if plan ? 'dropped' then
      perform holdfast.record_missed(schedule, array[epoch + (plan #>> '{dropped,1}')::bigint * unit],
                                     (plan #>> '{dropped,0}')::int, epoch + (plan #>> '{dropped,2}')::bigint * unit,
                                     clock);
    end if;
    schedule.words := left(plan ->> 'words', 200);
    perform holdfast.store_plan(holdfast.with_ticks(schedule, ticks, false), clock);
  end loop;
  return holdfast.next_tick_in(allowed);
end
$$;


--
-- Name: planned_limits(jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.planned_limits(plan jsonb) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if coalesce(jsonb_typeof(plan -> 'limits'), 'null') = 'null' then
    return null;
  end if;
  if jsonb_typeof(plan -> 'limits') <> 'array' then
    perform holdfast.refuse('RN005', format('limits must be an array of names, got %s', left(plan ->> 'limits', 100)),
                            'write ["shop:acme"]', 'limits');
  end if;
  return array(select jsonb_array_elements_text(plan -> 'limits'));
end
$$;


--
-- Name: policy_name(text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.policy_name(policy text, tenant text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT
    BEGIN ATOMIC
 SELECT (policy ||
         CASE
             WHEN (tenant = '*'::text) THEN ''::text
             ELSE (' for tenant '::text || tenant)
         END);
END;


--
-- Name: machines; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.machines (
    machine text NOT NULL,
    subject text NOT NULL,
    policy text,
    closing text,
    moved text,
    label text NOT NULL,
    CONSTRAINT known_subject CHECK ((subject = ANY (ARRAY['run'::text, 'step'::text]))),
    CONSTRAINT steps_have_a_policy CHECK (((subject = 'run'::text) OR (policy IS NOT NULL)))
);


--
-- Name: policies; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.policies (
    policy text NOT NULL,
    tries integer,
    waits interval[] DEFAULT '{}'::interval[] NOT NULL,
    base interval DEFAULT '00:00:00'::interval NOT NULL,
    growth numeric DEFAULT 2 NOT NULL,
    law text DEFAULT 'exponential'::text NOT NULL,
    longest interval,
    jitter numeric DEFAULT 0 NOT NULL,
    jitter_in_seconds boolean DEFAULT false NOT NULL,
    longest_retry_after interval DEFAULT '01:00:00'::interval NOT NULL,
    tenant text DEFAULT '*'::text NOT NULL,
    retryable boolean DEFAULT true NOT NULL,
    CONSTRAINT jitter_is_a_share CHECK (((jitter >= (0)::numeric) AND (jitter <= (1)::numeric))),
    CONSTRAINT known_law CHECK ((law = ANY (ARRAY['exponential'::text, 'power'::text]))),
    CONSTRAINT tries_at_least_one CHECK ((tries >= 1)),
    CONSTRAINT waits_are_not_negative CHECK (((base >= '00:00:00'::interval) AND (growth >= (0)::numeric) AND ('00:00:00'::interval <= ALL (waits))))
);

ALTER TABLE ONLY holdfast.policies FORCE ROW LEVEL SECURITY;


--
-- Name: step_policy(text, text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.step_policy(own text, kind text, machine text, tenant text) RETURNS SETOF holdfast.policies
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT p.policy,
     p.tries,
     p.waits,
     p.base,
     p.growth,
     p.law,
     p.longest,
     p.jitter,
     p.jitter_in_seconds,
     p.longest_retry_after,
     p.tenant,
     p.retryable
    FROM (((holdfast.machines c
      LEFT JOIN holdfast.policies o ON ((o.policy = step_policy.own)))
      LEFT JOIN holdfast.kinds k ON (((k.kind = step_policy.kind) AND ((k.tenant = step_policy.tenant) OR ((k.tenant = '*'::text) AND (NOT (EXISTS ( SELECT
            FROM holdfast.kinds t
           WHERE ((t.kind = k.kind) AND (t.tenant = step_policy.tenant))))))))))
      JOIN holdfast.policies p ON ((p.policy = COALESCE(o.policy, k.policy, c.policy))))
   WHERE (c.machine = step_policy.machine);
END;


--
-- Name: policy_of(text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.policy_of(own text, kind text, machine text) RETURNS SETOF holdfast.policies
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT p.policy,
     p.tries,
     p.waits,
     p.base,
     p.growth,
     p.law,
     p.longest,
     p.jitter,
     p.jitter_in_seconds,
     p.longest_retry_after,
     p.tenant,
     p.retryable
    FROM holdfast.step_policy(policy_of.own, policy_of.kind, policy_of.machine, '*'::text) p(policy, tries, waits, base, growth, law, longest, jitter, jitter_in_seconds, longest_retry_after, tenant, retryable);
END;


--
-- Name: policy_with_tries(text, integer, boolean); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.policy_with_tries(policy text, tries integer, retryable boolean) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
  like_it constant text := regexp_replace(policy_with_tries.policy, ' with (\d+|any) tries(, not retryable)?$', '');
  named constant text := format('%s with %s tries%s', like_it, coalesce(policy_with_tries.tries::text, 'any'),
                                case when not policy_with_tries.retryable then ', not retryable' end);
begin
  if exists (select from holdfast.policies p
              where p.policy = like_it and p.tries is not distinct from policy_with_tries.tries
                and p.retryable = policy_with_tries.retryable) then
    return like_it;
  end if;
  insert into holdfast.policies as o
    (policy, tenant, tries, retryable, waits, base, growth, law, longest, jitter, jitter_in_seconds,
     longest_retry_after)
  select named, p.tenant, policy_with_tries.tries, policy_with_tries.retryable, p.waits, p.base, p.growth, p.law,
         p.longest, p.jitter, p.jitter_in_seconds, p.longest_retry_after
    from holdfast.policies p where p.policy = like_it
  on conflict on constraint policies_pkey do update
    set waits = excluded.waits, base = excluded.base, growth = excluded.growth, law = excluded.law,
        longest = excluded.longest, jitter = excluded.jitter, jitter_in_seconds = excluded.jitter_in_seconds,
        longest_retry_after = excluded.longest_retry_after
    where o is distinct from excluded;  -- the original has changed since
  return named;
end
$_$;


--
-- Name: position_of(text, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.position_of(place text, clock timestamp with time zone) RETURNS holdfast.due_position
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  kept constant jsonb := nullif(current_setting('holdfast.position', true), '')::jsonb;
begin
  if kept ->> 'place' = position_of.place and (kept ->> 'until')::timestamptz > position_of.clock then
    return ((kept ->> 'due_at')::timestamptz, (kept ->> 'id')::bigint);
  end if;
  return ('-infinity'::timestamptz, 0::bigint);
end
$$;


--
-- Name: prepare_runs(holdfast.pick, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.prepare_runs(pick holdfast.pick, clock timestamp with time zone) RETURNS bigint[]
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  ended uuid[];
  fresh uuid[];
  moves holdfast.step_move[];
  dropped bigint[];
begin
  select coalesce(array_agg(r.id) filter (where r.finished_at is not null), '{}'),
         array_agg(r.id) filter (where r.finished_at is null and r.started_at is null)
    into ended, fresh
    from holdfast.runs r
   where r.id = any (pick.run_ids);
  if fresh is not null then
    update holdfast.runs r
       set state = m.to_state, last_event = 'started', started_at = prepare_runs.clock
      from holdfast.machine_moves m
     where r.id = any (fresh) and r.started_at is null and r.finished_at is null
       and m.machine = r.machine and m.from_state = r.state and m.event = 'started';
  end if;
  if ended = '{}' then  -- guard: ended
    return pick.ids;
  end if;
  select array_agg(s.id), array_agg((s.id, null, 'cancelled', null, null, null, null)::holdfast.step_move)
    into dropped, moves
    from holdfast.steps s
   where s.id = any (pick.ids) and s.run_id = any (ended);
  perform from holdfast.move_steps(moves);
  perform holdfast.park_unmovable_due(dropped, 'cancelled', prepare_runs.clock);  -- if they cannot be cancelled
  return array(select u.id from unnest(pick.ids) u (id) where u.id <> all (dropped));
end
$$;


--
-- Name: prunable(integer); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.prunable(most integer DEFAULT 1000000) RETURNS TABLE(what text, rule text, rows bigint, steps bigint, is_all boolean)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  look constant int := 10000;
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  youngest constant timestamptz := clock - holdfast.shortest_keep();
  above_step bigint := 0;
  above_run uuid := '00000000-0000-0000-0000-000000000000';
  looked int := 0;
  page record;
  found jsonb := '{}';  -- the rows and steps of each rule so far
  one record;
begin
  if prunable.most is null or prunable.most not between 1 and 100000000 then
    perform holdfast.refuse('RN005', format('most must be 1 to 100000000, got %s', prunable.most), 'use 1000000',
                            'most');
  end if;
  loop
    select max(w.id) as last_id, count(*)::int as seen, min(w.created_at) as oldest into page
      from (select s.id, s.created_at from holdfast.steps s where s.id > above_step order by s.id
             limit least(look, prunable.most - looked)) w;
    exit when page.seen = 0 or page.oldest > youngest or youngest is null;
    for one in
      select e.rule, count(*) as rows from holdfast.expired_steps(above_step, page.last_id, clock) e
       where holdfast.matches_any(allowed, e.tenant) group by e.rule
    loop
      found := jsonb_set(found, array[one.rule], to_jsonb(coalesce((found ->> one.rule)::bigint, 0) + one.rows));
    end loop;
    above_step := page.last_id;
    looked := looked + page.seen;
  end loop;
  return query select 'tasks', f.key, f.value::text::bigint, f.value::text::bigint, looked < prunable.most
                 from jsonb_each(found) f order by f.key;
  found := '{}';
  looked := 0;
  loop
    select (array_agg(w.id order by w.id desc))[1] as last_id, count(*)::int as seen, min(w.created_at) as oldest
      into page
      from (select r.id, r.created_at from holdfast.runs r where r.id > above_run order by r.id
             limit least(look, prunable.most - looked)) w;
    exit when page.seen = 0 or page.oldest > youngest or youngest is null;
    for one in
      select e.rule, count(*) as rows, sum(e.steps) as steps
        from holdfast.expired_runs(above_run, page.last_id, clock) e
       where holdfast.matches_any(allowed, e.tenant) group by e.rule
    loop
      found := jsonb_set(found, array[one.rule], jsonb_build_array(
        coalesce((found -> one.rule ->> 0)::bigint, 0) + one.rows,
        coalesce((found -> one.rule ->> 1)::bigint, 0) + one.steps));
    end loop;
    above_run := page.last_id;
    looked := looked + page.seen;
  end loop;
  return query select 'runs', f.key, (f.value ->> 0)::bigint, (f.value ->> 1)::bigint, looked < prunable.most
                 from jsonb_each(found) f order by f.key;
  if allowed is null then
    return query
    select 'keys', 'key_for', count(*), null::bigint, count(*) < prunable.most
      from (select from holdfast.keys k where k.expires_at <= clock limit prunable.most) e
    having count(*) > 0
    union all
    select 'months', m.month, null, null, true from unnest(holdfast.old_months(clock)) m (month);
  end if;
end
$$;


--
-- Name: prune_rest(holdfast.retention_sweep, integer, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.prune_rest(sweep holdfast.retention_sweep, batch integer, clock timestamp with time zone) RETURNS holdfast.retention_sweep
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  removed int;
begin
  delete from holdfast.keys k
   where (k.tenant, k.key) in (
           select o.tenant, o.key from holdfast.keys o
            where o.expires_at <= prune_rest.clock  -- guard: expiry
            order by o.expires_at
            limit prune_rest.batch
              for update skip locked);
  get diagnostics removed = row_count;
  sweep.keys := sweep.keys + removed;
  delete from holdfast.prunings p
   where p.id in (select o.id from holdfast.prunings o
                   where o.at < prune_rest.clock - (
                           select r.keep + interval '1 month' from holdfast.history_rule('journal') r)
                   order by o.at
                   limit prune_rest.batch);
  return sweep;
end
$$;


--
-- Name: prune_rest_of_run(holdfast.retention_sweep, integer); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.prune_rest_of_run(sweep holdfast.retention_sweep, batch integer) RETURNS holdfast.retention_sweep
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  ids constant bigint[] := array(select n.step_id from holdfast.run_steps n
                                  where n.run_id = sweep.run_left order by n.step_id limit prune_rest_of_run.batch);
begin
  perform holdfast.delete_run_steps(ids);
  delete from holdfast.run_steps n where n.run_id = sweep.run_left and n.step_id = any (ids);
  sweep.steps := sweep.steps + cardinality(ids);
  if cardinality(ids) < prune_rest_of_run.batch then
    sweep.run_left := null;
  end if;
  return sweep;
end
$$;


--
-- Name: prune_runs(holdfast.retention_sweep, integer, timestamp with time zone, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.prune_runs(sweep holdfast.retention_sweep, batch integer, youngest timestamp with time zone, clock timestamp with time zone) RETURNS holdfast.retention_sweep
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  last_id uuid;
  seen int;
  oldest timestamptz;
  found_ids uuid[];
  ends timestamptz[];
  rules text[];
  is_large boolean;
  is_cut boolean;
  ids uuid[];
begin
  select (array_agg(w.id order by w.id desc))[1], count(*), min(w.created_at) into last_id, seen, oldest
    from (select r.id, r.created_at from holdfast.runs r
           where r.id > sweep.run_id order by r.id limit prune_runs.batch) w;
  if seen = 0 or oldest > prune_runs.youngest or prune_runs.youngest is null then
    sweep.phase := 'rest';
    return sweep;
  end if;
  select array_agg(e.run_id), array_agg(e.finished_at), array_agg(e.rule), bool_or(e.steps > prune_runs.batch),
         count(*) < max(e.among)
    into found_ids, ends, rules, is_large, is_cut
    from (select x.*, sum(x.steps) over (order by x.run_id) as so_far, row_number() over (order by x.run_id) as no,
                 count(*) over () as among
            from holdfast.expired_runs(sweep.run_id, last_id, prune_runs.clock) x) e
   where e.so_far <= prune_runs.batch or e.no = 1;
  if found_ids is not null then
    ids := holdfast.lock_whole_runs(found_ids, ends, is_large);
    perform holdfast.call_prunes('{}', ids);
    if is_large then
      sweep.run_left := ids[1];
    else
      sweep.steps := sweep.steps + holdfast.delete_steps_of_runs(ids);
    end if;
    delete from holdfast.runs r where r.id = any (ids);
    perform holdfast.remember_pruned_runs(
      ids, array(select e.rule from unnest(found_ids, rules) e (id, rule) where e.id = any (ids) order by e.id),
      prune_runs.clock);
    sweep.runs := sweep.runs + cardinality(ids);
  end if;
  sweep.run_id := case when is_cut then found_ids[cardinality(found_ids)] else last_id end;
  return sweep;
end
$$;


--
-- Name: prune_steps(holdfast.retention_sweep, integer, timestamp with time zone, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.prune_steps(sweep holdfast.retention_sweep, batch integer, youngest timestamp with time zone, clock timestamp with time zone) RETURNS holdfast.retention_sweep
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  last_id bigint;
  seen int;
  oldest timestamptz;
  ids bigint[];
  ends timestamptz[];
  rules text[];
  gone bigint[];
  gone_rules text[];
begin
  select max(w.id), count(*), min(w.created_at) into last_id, seen, oldest
    from (select s.id, s.created_at from holdfast.steps s
           where s.id > sweep.step_id order by s.id limit prune_steps.batch) w;
  if seen = 0 or oldest > prune_steps.youngest or prune_steps.youngest is null then
    sweep.phase := 'runs';
    return sweep;
  end if;
  select array_agg(e.step_id), array_agg(e.finished_at), array_agg(e.rule) into ids, ends, rules
    from holdfast.expired_steps(sweep.step_id, last_id, prune_steps.clock) e;
  -- Ended at another time: it was retried meanwhile, so its end is to be judged anew.
  select array_agg(l.id), array_agg(l.rule) into gone, gone_rules
    from (select s.id, e.rule
            from unnest(ids, ends, rules) e (id, finished_at, rule)
            join holdfast.steps s on s.id = e.id
             and s.finished_at = e.finished_at  -- guard: over
           order by s.id
             for update of s skip locked) l;
  if gone is not null then
    perform holdfast.call_prunes(gone, '{}');
    delete from holdfast.note_keys k where k.step_id = any (gone);
    delete from holdfast.resolutions r where r.step_id = any (gone);
    delete from holdfast.steps s where s.id = any (gone);
    perform holdfast.remember_pruned_steps(gone, gone_rules, prune_steps.clock);
    sweep.steps := sweep.steps + cardinality(gone);
  end if;
  sweep.step_id := last_id;
  return sweep;
end
$$;


--
-- Name: prune_ticks(holdfast.retention_sweep, integer, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.prune_ticks(sweep holdfast.retention_sweep, batch integer, clock timestamp with time zone) RETURNS holdfast.retention_sweep
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  rule constant holdfast.retention_rules := (select r from holdfast.history_rule('ticks') r);
  removed int;
begin
  delete from holdfast.ticks t
   where (t.tenant, t.name, t.at) in (
           select o.tenant, o.name, o.at from holdfast.ticks o
            where o.fired_at <= prune_ticks.clock - rule.keep
              and not holdfast.is_needed_tick(o)  -- guard: needed
            order by o.fired_at
            limit prune_ticks.batch
              for update skip locked);
  get diagnostics removed = row_count;
  sweep.ticks := sweep.ticks + removed;
  return sweep;
end
$$;


--
-- Name: pruned(text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.pruned(of_id text) RETURNS TABLE(id text, label text, machine text, state text, outcome text, finished_at timestamp with time zone, run_id uuid, pruned_at timestamp with time zone, rule text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $_$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  last holdfast.journal;
begin
  if pruned.of_id ~ '^[0-9]{1,18}$' then
    select j.* into last from holdfast.journal j
     where j.step_id = pruned.of_id::bigint
       and holdfast.matches_any(allowed, j.tenant)  -- guard: step-tenant
     order by j.id desc limit 1;
    if exists (select from holdfast.steps s
                where s.id = last.step_id
                  and (s.run_id is null or exists (select from holdfast.runs r where r.id = s.run_id))) then
      return;
    end if;
  elsif pruned.of_id ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    select j.* into last from holdfast.journal j
     where j.run_id = pruned.of_id::uuid and j.step_id is null
       and holdfast.matches_any(allowed, j.tenant)  -- guard: run-tenant
     order by j.id desc limit 1;
    if exists (select from holdfast.runs r where r.id = last.run_id) then
      return;
    end if;
  end if;
  return query
  select pruned.of_id, m.label, last.machine, last.to_state, t.outcome, last.at, last.run_id, p.at, p.rule
    from (select) one
    left join holdfast.machines m on m.machine = last.machine
    left join holdfast.machine_states t on t.machine = last.machine and t.state = last.to_state
    left join lateral (
      select g.at, g.rule from holdfast.prunings g
       where case when last.run_id is null
                  then g.span @> last.step_id and last.step_id = any (g.step_ids)
                  else g.span @> holdfast.place_of(last.run_id) and last.run_id = any (g.run_ids) end
       order by g.at desc limit 1) p on true
   where last.id is not null;
end
$_$;


--
-- Name: pull_parked(text, integer, text[], text[], text, integer, bigint[], bigint[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.pull_parked(queue text, priority integer, kinds text[], tenants text[], machine text, wanted integer, full_ids bigint[], taken bigint[], clock timestamp with time zone) RETURNS bigint[]
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_nestloop TO 'on'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_sort TO 'on'
    SET jit TO 'off'
    AS $$
declare
  pulled bigint[];
  passed bigint[];
begin
  if not exists (select from holdfast.limit_states t where t.wake_at <= pull_parked.clock) then
    return '{}';
  end if;
  with open as materialized (
    select t.id,
           least(pull_parked.wanted, case when t.open_until is not null then 1
                                          when r.concurrency is not null then greatest(r.concurrency - t.held, 1)
                                          end) as room
      from (select s.* from holdfast.limit_states s
             where s.wake_at <= pull_parked.clock and s.id <> all (pull_parked.full_ids)
             order by s.wake_at, s.id
             limit 1000) t
      left join lateral holdfast.limit_rule(t.name, t.tenant) r on true),
  heads as materialized (
    select h.id, h.parked_due_at, o.room, o.id as limit_id,
           holdfast.matches_any(pull_parked.kinds, h.kind)
           and holdfast.matches_any(pull_parked.tenants, h.tenant)
           and holdfast.matches(pull_parked.machine, h.machine) as is_served
      from open o
     cross join lateral (
       select p.id, p.parked_due_at, p.kind, p.tenant, p.machine
         from holdfast.steps p
        where p.limited_by = o.id and p.queue = pull_parked.queue and coalesce(p.parked_for, '') = 'limit'
          and p.priority = pull_parked.priority and p.id <> all (pull_parked.taken)
        order by p.parked_due_at, p.id
        limit o.room + case when pull_parked.kinds is null and pull_parked.tenants is null
                                 and pull_parked.machine is null then 0 else 200 end) h),
  ranked as (
    select h.id, h.parked_due_at, h.is_served, h.room,
           row_number() over (partition by h.limit_id, h.is_served order by h.parked_due_at, h.id) as place
      from heads h)
  select array(select l.id
                 from holdfast.steps l
                where l.id = any (array(select k.id from ranked k where k.is_served and k.place <= k.room
                                         order by k.parked_due_at, k.id limit pull_parked.wanted))
                  and coalesce(l.parked_for, '') = 'limit'  -- not bare: the index of the limits' queues would answer it
                order by l.parked_due_at, l.id
                  for update skip locked),
         array(select k.id from ranked k where not k.is_served)
    into pulled, passed;
  if passed <> '{}' then
    perform holdfast.park_unserved(pull_parked.queue, passed, pull_parked.clock);
  end if;
  return pulled;
end
$$;


--
-- Name: record_missed(holdfast.schedules, timestamp with time zone[], integer, timestamp with time zone, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.record_missed(schedule holdfast.schedules, missed timestamp with time zone[], ticks integer, until_at timestamp with time zone, clock timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  insert into holdfast.ticks (tenant, name, at, due_at, fired_at, cause, outcome, face, ticks, until_at, actor)
  select schedule.tenant, schedule.name, m.at, m.at + schedule.shift, record_missed.clock, 'clock', 'missed',
         schedule.face, record_missed.ticks, record_missed.until_at, 'scheduler'
    from unnest(record_missed.missed) m (at)
  on conflict on constraint ticks_pkey do nothing;
end
$$;


--
-- Name: record_tick(holdfast.schedules, timestamp with time zone, timestamp with time zone, text, text[], text[], jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.record_tick(schedule holdfast.schedules, at timestamp with time zone, clock timestamp with time zone, outcome text, ids text[], cancelled text[], error jsonb) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  insert into holdfast.ticks (tenant, name, at, due_at, fired_at, cause, outcome, face, ids, cancelled, error, actor)
  values (schedule.tenant, schedule.name, record_tick.at, record_tick.at + schedule.shift, record_tick.clock, 'clock',
          record_tick.outcome, schedule.face, record_tick.ids, record_tick.cancelled, record_tick.error, 'scheduler');
end
$$;


--
-- Name: record_worker(text, text, text[], text[], text, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.record_worker(worker text, queue text, kinds text[], tenants text[], machine text, clock timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if not exists (
    select from holdfast.workers w
     where w.worker = record_worker.worker and w.queue = record_worker.queue
       and w.seen_at > record_worker.clock - interval '10 s'
       and w.kinds is not distinct from record_worker.kinds and w.tenants is not distinct from record_worker.tenants
       and w.machine is not distinct from record_worker.machine) then
    perform holdfast.check_name('queue', record_worker.queue);
    perform holdfast.check_names('kind', record_worker.kinds);
    perform holdfast.check_names('tenant', record_worker.tenants);
    insert into holdfast.workers as w (worker, queue, kinds, tenants, machine, started_at, seen_at)
    values (record_worker.worker, record_worker.queue, record_worker.kinds,
            record_worker.tenants, record_worker.machine,
            record_worker.clock, record_worker.clock)
    on conflict on constraint workers_pkey do update
      set kinds = excluded.kinds, tenants = excluded.tenants, machine = excluded.machine, seen_at = excluded.seen_at
      where holdfast.is_own_worker(w.tenants, holdfast.allowed_tenants());
    if not found then
      perform holdfast.refuse_worker(record_worker.worker);
    end if;
  end if;
  if exists (select from holdfast.steps s where s.parked_for = 'handler' and s.queue = record_worker.queue) then
    perform holdfast.unpark_served(record_worker.queue, record_worker.kinds, record_worker.tenants,
                                   record_worker.machine);
  end if;
end
$$;


--
-- Name: refresh_limits(bigint[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.refresh_limits(ids bigint[], clock timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_nestloop TO 'on'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  awake bigint[];
begin
  with due as (
    select s.id,
           case when s.parked = 0 then null
                when s.held >= r.concurrency then null
                when s.open_until is not null and holdfast.is_probed(s) then null
                else nullif(greatest(
                       refresh_limits.clock, s.paused_until, r.paused_until, s.open_until,
                       case when r.rate is not null then (
                         select min(holdfast.tokens_suffice_at(s, r, q.charge, refresh_limits.clock))
                           from holdfast.parked_queues(s.id) q) end), 'infinity') end as wake_at
      from holdfast.limit_states s
      left join lateral holdfast.limit_rule(s.name, s.tenant) r on true
     where s.id = any (refresh_limits.ids) and (s.parked > 0 or s.wake_at is not null)),
  changed as (
    update holdfast.limit_states s
       set wake_at = d.wake_at  -- guard: wake
      from due d
     where s.id = d.id and s.wake_at is distinct from d.wake_at
    returning s.id, s.wake_at)
  select array_agg(c.id) into awake from changed c where c.wake_at <= refresh_limits.clock;
  if awake is not null and exists (select from holdfast.workers w where w.is_asleep) then
    perform holdfast.wake(array(
      select distinct q.queue from unnest(awake) a (id) cross join lateral holdfast.parked_queues(a.id) q));
  end if;
end
$$;


--
-- Name: refund_steps(bigint[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.refund_steps(ids bigint[], clock timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  limit_ids bigint[];
begin
  with refund as (
    select h.limit_id, sum(coalesce(s.charge, 1)) filter (where s.claimed_at >= t.bucket_at) as charge
      from holdfast.steps s
     cross join unnest(s.holds) h (limit_id)
      join holdfast.limit_states t on t.id = h.limit_id
     where s.id = any (refund_steps.ids)
     group by h.limit_id),
  filled as (
    update holdfast.limit_states t
       set tokens = least(r.burst, holdfast.tokens_at(t, r, refund_steps.clock) + f.charge),
           filled_at = greatest(t.filled_at, refund_steps.clock)
      from refund f
      join holdfast.limit_states o on o.id = f.limit_id
     cross join lateral holdfast.limit_rule(o.name, o.tenant) r
     where t.id = f.limit_id and f.charge is not null and t.tokens is not null and r.rate is not null
    returning t.id)
  select array_agg(f.id) into limit_ids from filled f;
  perform holdfast.refresh_limits(limit_ids, refund_steps.clock);
end
$$;


--
-- Name: refuse(text, text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.refuse(code text, message text, hint text DEFAULT NULL::text, field text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if refuse.hint is null then
    raise exception using errcode = refuse.code, message = refuse.message;
  end if;
  if refuse.field is null then
    raise exception using errcode = refuse.code, message = refuse.message, hint = refuse.hint;
  end if;
  raise exception using errcode = refuse.code, message = refuse.message, hint = refuse.hint, column = refuse.field;
end
$$;


--
-- Name: refuse_change(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
begin
  perform holdfast.refuse(
    'RN008', format('%s is append-only: %s is refused', tg_table_name, lower(tg_op)),
    case when tg_table_name ~ '^(journal|notes)(_|$)'
         then format('retention drops whole months (%s); `holdfast retention set 1y --journal` changes that',
                     (select holdfast.rule_text(r) from holdfast.history_rule('journal') r))
         else 'its rows stay; retention does not remove them' end);
  return null;
end
$_$;


--
-- Name: refuse_move(text, text, text, text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.refuse_move(machine text, from_state text, event text, to_state text, actor_kind text, subject text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  ways text;
begin
  select string_agg(format('%s by %s', m.to_state, m.event), ', ' order by m.event)
    into ways
    from holdfast.machine_moves m
   where m.machine = refuse_move.machine and m.from_state = refuse_move.from_state;
  perform holdfast.refuse(
    'RN001',
    format('%s %s: %s may not move it from %s to %s (%s)', refuse_move.machine, refuse_move.subject,
           refuse_move.actor_kind,
           refuse_move.from_state, refuse_move.to_state, refuse_move.event),
    format('from %s it may become: %s', refuse_move.from_state, coalesce(ways, 'nothing, it is final')));
  return null;
end
$$;


--
-- Name: refuse_options(text, jsonb, text[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.refuse_options(face text, options jsonb, known text[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  odd constant text := (
    select min(k.name) from jsonb_object_keys(coalesce(refuse_options.options, '{}')) k (name)
     where k.name <> all (refuse_options.known));
begin
  if odd is not null then
    perform holdfast.refuse('RN005', format('a schedule of %s has no option %s', refuse_options.face, odd),
                            format('use some of: %s', array_to_string(refuse_options.known, ', ')), 'options');
  end if;
end
$$;


--
-- Name: refuse_pruned(text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.refuse_pruned(id text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  gone record;
begin
  select p.* into gone from holdfast.pruned(refuse_pruned.id) p;
  if gone.id is not null then
    perform holdfast.refuse(
      'RN012',
      format('%s %s was pruned: it ended as %s at %s%s', gone.label, gone.id, coalesce(gone.outcome, gone.state),
             to_char(gone.finished_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"'),
             ', and the rule "' || gone.rule || '" removed it'),
      format('see its history: holdfast runs show %s; see the rules: holdfast retention show', gone.id), gone.id);
  end if;
end
$$;


--
-- Name: refuse_renumbering(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.refuse_renumbering() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform holdfast.refuse('RN001', format('the ids of %s cannot be changed', tg_table_name),
                          'start another step or run instead');
  return null;
end
$$;


--
-- Name: refuse_worker(text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.refuse_worker(worker text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform holdfast.refuse('RN009', format('worker %s serves tenants that %s may not act for',
                                          refuse_worker.worker, session_user),
                          'use another name for the worker');
end
$$;


--
-- Name: release_event(holdfast.steps); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.release_event(step holdfast.steps) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  return coalesce(
    (select m.event from holdfast.machine_moves m
      where m.machine = step.machine and m.from_state = step.state and m.event in ('released', 'cancelled')
      order by m.event desc limit 1),
    'released');
end
$$;


--
-- Name: remember_position(text, holdfast.due_position, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.remember_position(place text, last holdfast.due_position, clock timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  kept constant jsonb := nullif(current_setting('holdfast.position', true), '')::jsonb;
  until constant timestamptz := case
    when kept ->> 'place' = remember_position.place and (kept ->> 'until')::timestamptz > remember_position.clock
    then (kept ->> 'until')::timestamptz else remember_position.clock + interval '1 s' end;
begin
  perform set_config('holdfast.position', jsonb_build_object(
    'place', remember_position.place, 'due_at', remember_position.last.due_at, 'id', remember_position.last.id,
    'until', until)::text, false);
end
$$;


--
-- Name: prunings; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.prunings (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    rule text NOT NULL,
    span int8range NOT NULL,
    step_ids bigint[],
    run_ids uuid[]
);


--
-- Name: remember_pruned_runs(uuid[], text[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.remember_pruned_runs(ids uuid[], rules text[], clock timestamp with time zone) RETURNS void
    LANGUAGE sql
    BEGIN ATOMIC
 INSERT INTO holdfast.prunings (at, rule, span, run_ids)  SELECT remember_pruned_runs.clock AS clock,
             u.rule,
             int8range(min(holdfast.place_of(u.id)), max(holdfast.place_of(u.id)), '[]'::text) AS int8range,
             array_agg(u.id ORDER BY u.id) AS array_agg
            FROM UNNEST(remember_pruned_runs.ids, remember_pruned_runs.rules) u(id, rule)
           GROUP BY u.rule;
END;


--
-- Name: remember_pruned_steps(bigint[], text[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.remember_pruned_steps(ids bigint[], rules text[], clock timestamp with time zone) RETURNS void
    LANGUAGE sql
    BEGIN ATOMIC
 INSERT INTO holdfast.prunings (at, rule, span, step_ids)  SELECT remember_pruned_steps.clock AS clock,
             u.rule,
             int8range(min(u.id), max(u.id), '[]'::text) AS int8range,
             array_agg(u.id ORDER BY u.id) AS array_agg
            FROM UNNEST(remember_pruned_steps.ids, remember_pruned_steps.rules) u(id, rule)
           GROUP BY u.rule;
END;


--
-- Name: remember_queues(text[], integer[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.remember_queues(queues text[], priorities integer[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  insert into holdfast.queues as q (queue, top_priority, created_at)
  select u.queue, max(u.priority), holdfast.clock()
    from unnest(remember_queues.queues, remember_queues.priorities) u (queue, priority)
    left join holdfast.queues k on k.queue = u.queue
   where k.queue is null or k.top_priority < u.priority
   group by u.queue
   order by u.queue
  on conflict (queue) do update set top_priority = greatest(q.top_priority, excluded.top_priority);
end
$$;


--
-- Name: renew_leases(text, bigint[], interval, bigint[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.renew_leases(worker text, lease_ids bigint[], lease interval DEFAULT NULL::interval, step_ids bigint[] DEFAULT NULL::bigint[]) RETURNS SETOF bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  held constant bigint[] := coalesce(renew_leases.step_ids, array(
    select s.id from holdfast.steps s
     where s.lease_until is not null and s.lease_owner = renew_leases.worker
       and s.lease_id = any (renew_leases.lease_ids)));
  free bigint[];
begin
  perform holdfast.check_claim(renew_leases.worker, 1, renew_leases.lease);
  update holdfast.workers w
     set seen_at = clock
   where w.worker = renew_leases.worker and w.seen_at < clock - interval '10 s'
     and holdfast.is_own_worker(w.tenants, allowed);
  perform holdfast.set_actor('worker', renew_leases.worker);
  free := array(
    select s.id from holdfast.steps s
     where s.id = any (held)
       and s.lease_id = any (renew_leases.lease_ids)  -- guard: lease
       and s.lease_owner = renew_leases.worker  -- guard: owner
       -- Not `>= clock`: a lease that ran out but was not yet taken from the worker is still its own.
       and holdfast.matches_any(allowed, s.tenant)  -- guard: tenant
       for no key update skip locked);
  return query
  update holdfast.steps s
     set lease_until = clock + coalesce(
           renew_leases.lease,
           holdfast.lease_of(s.kind, s.tenant), interval '300 s')
   where s.id = any (free)
  returning s.lease_id;
  if cardinality(free) < cardinality(renew_leases.lease_ids) then
    return query
    select s.lease_id from holdfast.steps s
     where s.id = any (held) and s.id <> all (free) and s.lease_owner = renew_leases.worker
       and s.lease_id = any (renew_leases.lease_ids)
       and holdfast.matches_any(allowed, s.tenant);
  end if;
  perform holdfast.set_actor();
end
$$;


--
-- Name: reopen_failed(bigint[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.reopen_failed(ids bigint[]) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  reopened int;
begin
  update holdfast.steps s
     set state = m.to_state, last_event = 'reopened'
    from holdfast.machine_moves m
   where s.id = any (reopen_failed.ids)
     and m.machine = s.machine and m.from_state = s.state and m.event = 'reopened'
     and exists (select from holdfast.machine_moves c
                  where c.machine = s.machine and c.from_state = m.to_state and c.event = 'claimed')
     and not exists (select from holdfast.machine_moves c
                      where c.machine = s.machine and c.from_state = s.state and c.event = 'claimed');
  get diagnostics reopened = row_count;
  return reopened;
end
$$;


--
-- Name: reopen_run(uuid, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.reopen_run(run_id uuid, clock timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  run holdfast.runs;
begin
  -- Locked even if it has not ended: this waits for a settle that is about to close it.
  select r.* into run from holdfast.runs r where r.id = reopen_run.run_id for update;
  if run.id is null then  -- retention was faster
    perform holdfast.refuse_pruned(reopen_run.run_id::text);
    perform holdfast.refuse('RN004', format('there is no run %s', reopen_run.run_id),
                            'find the id with `holdfast runs list`', reopen_run.run_id::text);
  end if;
  if run.finished_at is not null and holdfast.move_runs(array[run.id], 'reopened', reopen_run.clock) = 0 then
    perform holdfast.refuse('RN010', format('run %s is %s and its steps cannot change', run.id, run.state),
                            format('%s is final for a %s', run.state, run.machine), run.id::text);
  end if;
end
$$;


--
-- Name: report_on(holdfast.steps, interval, boolean, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.report_on(step holdfast.steps, lease interval, is_started boolean, clock timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  running constant text := case when report_on.is_started then (
    select m.to_state from holdfast.machine_moves m
     where m.machine = step.machine and m.from_state = step.state and m.event = 'started') end;
  is_old constant boolean := step.lease_until < report_on.clock + report_on.lease * 2 / 3;  -- guard: third
begin
  if running is not null or is_old then
    perform holdfast.set_actor('worker', step.lease_owner);
    update holdfast.steps s
       set state = coalesce(running, s.state),
           last_event = case when running is not null then 'started' else s.last_event end,
           lease_until = case when is_old then report_on.clock + report_on.lease else s.lease_until end
     where s.id = step.id;
    perform holdfast.set_actor();
  end if;
end
$$;


--
-- Name: rescue_steps(integer); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.rescue_steps(batch integer DEFAULT 100) RETURNS SETOF holdfast.settled_step
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_sort TO 'off'
    SET jit TO 'off'
    AS $$
declare
  chunk constant int := 1000;
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  expired bigint[];
begin
  if rescue_steps.batch is not null then
    return query
    select e.* from holdfast.expire_leases(rescue_steps.batch, clock) e
     where allowed is null
        or exists (select from holdfast.steps s where s.id = e.step_id and s.tenant = any (allowed));
    return;
  end if;
  -- By run: chunk after chunk locks runs in ascending order, as a single settle does.
  expired := array(select s.id from holdfast.steps s where s.lease_until < clock order by s.run_id nulls first, s.id);
  for start in 1 .. cardinality(expired) by chunk loop
    return query
    select e.* from holdfast.expire_steps(
      array(select s.id from holdfast.steps s
             -- it may have been renewed by now
             where s.id = any (expired[start : start + chunk - 1]) and s.lease_until < clock
               for update skip locked),
      clock) e
     where allowed is null
        or exists (select from holdfast.steps s where s.id = e.step_id and s.tenant = any (allowed));
  end loop;
end
$$;


--
-- Name: reserve_step_ids(integer); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.reserve_step_ids(amount integer) RETURNS SETOF bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  ids bigint[];
begin
  if reserve_step_ids.amount is null or reserve_step_ids.amount not between 0 and 1000000 then
    perform holdfast.refuse('RN005', format('amount must be 0 to 1000000, got %s', reserve_step_ids.amount),
                            'reserve more with another call', 'amount');
  end if;
  ids := array(select nextval('holdfast.step_ids') from generate_series(1, reserve_step_ids.amount));
  insert into holdfast.reserved_ids (login, first_id, last_id, reserved_at)
  select session_user, min(u.id), max(u.id), holdfast.clock()
    -- one row per gapless range: other sessions take ids in between
    from (select i.id, i.id - i.no as before from unnest(ids) with ordinality i (id, no)) u
   group by u.before;
  return query select unnest(ids);
end
$$;


--
-- Name: reset_limit(text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.reset_limit(name text, tenant text DEFAULT NULL::text, actor text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  tenants constant text[] := holdfast.limit_tenants(reset_limit.tenant, format('limit %s', reset_limit.name));
  owner text;
  rule jsonb;
  is_known boolean := false;
begin
  perform holdfast.check_limit_name(reset_limit.name);
  foreach owner in array tenants loop
    select c.payload into rule
      from holdfast.limit_changes c
     where c.name = reset_limit.name and c.tenant = owner and c.event = 'defined' and c.actor_kind = 'worker'
     order by c.id desc
     limit 1;
    continue when not found;
    is_known := true;
    perform holdfast.define_limit(
      reset_limit.name, (rule ->> 'concurrency')::int, (rule ->> 'rate')::numeric, (rule ->> 'per')::interval,
      (rule ->> 'burst')::numeric, (rule ->> 'breaker_after')::int, (rule ->> 'breaker_for')::interval,
      case when rule ? 'breaker_counts' then array(select jsonb_array_elements_text(rule -> 'breaker_counts')) end,
      owner, reset_limit.actor);
  end loop;
  if not is_known then
    perform holdfast.refuse('RN004', format('no app has defined limit %s', reset_limit.name),
                            'define_limit sets its rule, forget_limit removes it');
  end if;
end
$$;


--
-- Name: resolve(text, text, jsonb, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.resolve(id text, reason text DEFAULT NULL::text, result jsonb DEFAULT NULL::jsonb, actor text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  return holdfast.act_on(resolve.id, 'resolved', resolve.reason, resolve.result, resolve.actor);
end
$$;


--
-- Name: resume_limit(text, text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.resume_limit(name text, reason text DEFAULT NULL::text, tenant text DEFAULT NULL::text, actor text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  tenants constant text[] := holdfast.limit_tenants(resume_limit.tenant, format('limit %s', resume_limit.name));
begin
  perform holdfast.check_limit_name(resume_limit.name);
  perform holdfast.check_reason(resume_limit.reason);
  perform holdfast.check_name('actor', resume_limit.actor);
  perform holdfast.set_pause(resume_limit.name, tenants, null, null, null);
  insert into holdfast.limit_changes (at, tenant, name, event, actor_kind, actor, login, reason)
  select clock, u.tenant, resume_limit.name, 'resumed', 'user', coalesce(resume_limit.actor, session_user),
         case when resume_limit.actor <> session_user then session_user end, resume_limit.reason
    from unnest(tenants) u (tenant);
end
$$;


--
-- Name: resume_queue(text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.resume_queue(queue text, reason text DEFAULT NULL::text, actor text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  was_paused boolean;
begin
  perform holdfast.check_name('queue', resume_queue.queue);
  perform holdfast.check_reason(resume_queue.reason);
  perform holdfast.check_name('actor', resume_queue.actor);
  perform holdfast.check_all_tenants('resume_queue');  -- all tenants share a queue
  select q.paused_at is not null into was_paused from holdfast.queues q where q.queue = resume_queue.queue for update;
  if was_paused is null then
    perform holdfast.refuse('RN004', format('there is no queue %s', resume_queue.queue),
                            '`holdfast queues list` shows them; a first start makes a queue', resume_queue.queue);
  end if;
  if was_paused then
    update holdfast.queues q
       set paused_at = null, paused_by = null, pause_reason = null
     where q.queue = resume_queue.queue;
    insert into holdfast.queue_pauses (at, queue, event, actor, login, reason)
    values (holdfast.clock(), resume_queue.queue, 'resumed', coalesce(resume_queue.actor, session_user),
            case when resume_queue.actor <> session_user then session_user end, resume_queue.reason);
  end if;
  perform holdfast.wake(array[resume_queue.queue]);
end
$$;


--
-- Name: resume_schedule(text, text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.resume_schedule(name text, reason text DEFAULT NULL::text, tenant text DEFAULT 'default'::text, actor text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  schedule holdfast.schedules := holdfast.schedule_to_change(
    resume_schedule.name, resume_schedule.tenant, resume_schedule.reason, resume_schedule.actor);
begin
  if schedule.paused_at is null then
    return;
  end if;
  if schedule.ended_at is null and schedule.broken is null then
    if schedule.at > schedule.after_at and schedule.at + schedule.shift <= clock then
      perform holdfast.record_missed(schedule, array[schedule.at], 1, null, clock);
    end if;
    schedule.after_at := greatest(
      schedule.after_at,
      case when schedule.every is null then clock - schedule.shift
           else holdfast.tick_before(schedule.after_at, schedule.every, clock - schedule.shift) end);
    schedule.upcoming := '{}';
    schedule.is_planned := false;
  end if;
  update holdfast.schedules s
     set paused_at = null, paused_by = null, pause_reason = null, upcoming = schedule.upcoming,
         is_planned = schedule.is_planned, after_at = schedule.after_at,
         next_at = schedule.upcoming[1] + s.shift,
         wake_at = case when s.ended_at is null and s.broken is null then clock end
   where s.id = schedule.id
  returning s.* into schedule;
  if schedule.wake_at is not null and schedule.cron is null then
    perform holdfast.store_plan(holdfast.plan_by_interval(schedule, clock), clock);
  end if;
  perform holdfast.note_schedule(schedule.tenant, schedule.name, 'resumed', 'user', resume_schedule.actor,
                                 resume_schedule.reason);
  perform holdfast.wake_for_schedules();
end
$$;


--
-- Name: retention_rule(text, text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.retention_rule(machine text, queue text, outcome text, tenant text) RETURNS SETOF holdfast.retention_rules
    LANGUAGE sql STABLE ROWS 1
    BEGIN ATOMIC
 SELECT r.what,
     r.tenant,
     r.machine,
     r.queue,
     r.outcome,
     r.keep,
     r.set_at,
     r.is_default
    FROM holdfast.retention_rules r
   WHERE ((r.what = 'runs'::text) AND (r.tenant = ANY (ARRAY['*'::text, retention_rule.tenant])) AND COALESCE((r.machine = retention_rule.machine), (r.machine IS NULL)) AND COALESCE((r.queue = retention_rule.queue), (r.queue IS NULL)) AND COALESCE((r.outcome = retention_rule.outcome), (r.outcome IS NULL)))
   ORDER BY r.is_default, (r.tenant = '*'::text), (r.machine IS NULL), (r.queue IS NULL), (r.outcome IS NULL)
  LIMIT 1;
END;


--
-- Name: retention_tenants(text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.retention_tenants(what text, tenant text) RETURNS text[]
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if retention_tenants.what <> 'runs' then
    if coalesce(retention_tenants.tenant, '*') <> '*' then
      perform holdfast.refuse('RN005', format('the rule of the %s is one for all tenants, got tenant %s',
                                              retention_tenants.what, retention_tenants.tenant),
                              'leave the tenant out', 'tenant');
    end if;
    perform holdfast.check_all_tenants(format('the retention of the %s', retention_tenants.what));
    return array['*'];
  end if;
  return holdfast.limit_tenants(retention_tenants.tenant, 'a rule of retention');
end
$$;


--
-- Name: retention_violations(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.retention_violations() RETURNS TABLE(invariant text, subject text, detail text)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  with orphans as (
    select n.run_id, n.step_id, r.id is null as lacks_run, s.id is null as lacks_step
      from holdfast.run_steps n
      left join holdfast.runs r on r.id = n.run_id
      left join holdfast.steps s on s.id = n.step_id
     where (r.id is null or s.id is null)
       and not exists (select from holdfast.retention_sweep w where w.run_left = n.run_id))
  select 'run_is_whole', 'run ' || o.run_id,
         format('step %s belongs to it, but %s', o.step_id,
                case when o.lacks_run then 'the run is gone' else 'the step is gone' end)
    from orphans o
  union all
  select 'run_is_whole', 'run ' || s.run_id, format('step %s is left of it', s.id)
    from holdfast.steps s
   where s.run_id is not null and not exists (select from holdfast.runs r where r.id = s.run_id)
     and not exists (select from holdfast.run_steps n where n.run_id = s.run_id and n.step_id = s.id)
  union all
  select 'edge_joins_two_steps', 'step ' || e.next_id,
         format('it waits for step %s, and one of them is gone', e.step_id)
    from holdfast.edges e
   where (not exists (select from holdfast.steps s where s.id = e.step_id)
          or not exists (select from holdfast.steps s where s.id = e.next_id))
     and not exists (select from holdfast.retention_sweep w
                       join holdfast.run_steps n on n.run_id = w.run_left and n.step_id in (e.step_id, e.next_id))
  union all
  select 'noted_step_exists', 'step ' || k.step_id, format('it has the key %s of a note, and is gone', k.key)
    from holdfast.note_keys k
   where not exists (select from holdfast.steps s where s.id = k.step_id)
  union all
  select 'retention_sweeps', 'retention_sweep', 'its row is missing; insert it again: begins_at'
   where not exists (select from holdfast.retention_sweep)
$$;


--
-- Name: retire_worker(text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.retire_worker(worker text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform holdfast.check_name('worker', retire_worker.worker);
  delete from holdfast.workers w
   where w.worker = retire_worker.worker and holdfast.is_own_worker(w.tenants, holdfast.allowed_tenants());
end
$$;


--
-- Name: retry(text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.retry(id text, reason text DEFAULT NULL::text, actor text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  return holdfast.act_on(retry.id, 'reopened', retry.reason, actor => retry.actor);
end
$$;


--
-- Name: rule_text(holdfast.retention_rules); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.rule_text(rule holdfast.retention_rules) RETURNS text
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT ((COALESCE(NULLIF(concat_ws(', '::text, ('tenant '::text || NULLIF((rule).tenant, '*'::text)), ('machine '::text || (rule).machine), ('queue '::text || (rule).queue), (rule).outcome, NULLIF((rule).what, 'runs'::text)), ''::text), 'all'::text) || ': '::text) ||
         CASE
             WHEN ((rule).keep IS NULL) THEN 'forever'::text
             WHEN ((rule).keep = '00:00:00'::interval) THEN 'not at all'::text
             ELSE ( SELECT string_agg((((u.amount || ' '::text) || u.unit) ||
                     CASE
                         WHEN (u.amount = '1'::text) THEN ''::text
                         ELSE 's'::text
                     END), ' '::text ORDER BY u.no) AS string_agg
                FROM ( VALUES (1,'year'::text,(EXTRACT(year FROM (rule_text.rule).keep))::text), (2,'month'::text,(EXTRACT(month FROM (rule_text.rule).keep))::text), (3,'day'::text,(EXTRACT(day FROM (rule_text.rule).keep))::text), (4,'hour'::text,(EXTRACT(hour FROM (rule_text.rule).keep))::text), (5,'minute'::text,(EXTRACT(minute FROM (rule_text.rule).keep))::text), (6,'second'::text,(trim_scale(EXTRACT(second FROM (rule_text.rule).keep)))::text)) u(no, unit, amount)
               WHERE (u.amount <> '0'::text))
         END);
END;


--
-- Name: run_events(uuid); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.run_events(of_run uuid) RETURNS TABLE(id bigint, at timestamp with time zone, kind text, step_id bigint, step text, event text, from_state text, to_state text, actor_kind text, actor text, message text, payload jsonb, attempt integer)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return query
  select j.id, j.at, 'move', j.step_id, null::text, j.event, j.from_state, j.to_state, j.actor_kind, j.actor, j.reason,
         j.error, j.attempt
    from holdfast.journal j
   where j.run_id = run_events.of_run and j.step_id is null and holdfast.matches_any(allowed, j.tenant)
  union all
  select y.id, y.at, y.entry, y.step_id, n.name, y.what, y.from_state, y.to_state, y.actor_kind, y.actor, y.said,
         y.payload, y.attempt
    from holdfast.run_steps n
   cross join lateral (select * from holdfast.step_story t where t.step_id = n.step_id offset 0) y  -- each by its index
   where n.run_id = run_events.of_run
   order by 1;
end
$$;


--
-- Name: run_results(uuid[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.run_results(run_ids uuid[]) RETURNS TABLE(run_id uuid, state text, outcome text)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return query
  select r.id, r.state, case when r.finished_at is not null then t.outcome end
    from holdfast.runs r
    join holdfast.machine_states t on t.machine = r.machine and t.state = r.state
   where r.id = any (run_results.run_ids) and holdfast.matches_any(allowed, r.tenant);
end
$$;


--
-- Name: run_schedule(text, text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.run_schedule(name text, reason text DEFAULT NULL::text, tenant text DEFAULT 'default'::text, actor text DEFAULT NULL::text) RETURNS text[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  schedule constant holdfast.schedules := holdfast.schedule_to_change(
    run_schedule.name, run_schedule.tenant, run_schedule.reason, run_schedule.actor);
  who constant text := coalesce(run_schedule.actor, session_user);
  moment timestamptz := clock;
  ids text[];
begin
  while moment = any (schedule.upcoming)  -- a tick of its own comes as well
        or exists (select from holdfast.ticks t
                    where t.tenant = schedule.tenant and t.name = schedule.name and t.at = moment) loop
    moment := moment + interval '1 microsecond';
  end loop;
  perform holdfast.set_actor('user', who, coalesce(run_schedule.reason, format('schedule %s, run by hand',
                                                                               schedule.name)));
  ids := holdfast.start_tick(schedule, clock);
  perform holdfast.set_actor();
  insert into holdfast.ticks (tenant, name, at, due_at, fired_at, cause, outcome, face, ids, actor)
  values (schedule.tenant, schedule.name, moment, moment, clock, 'run', 'started', schedule.face, ids, who);
  perform holdfast.note_schedule(schedule.tenant, schedule.name, 'run', 'user', run_schedule.actor,
                                 run_schedule.reason, jsonb_build_object('ids', ids));
  return ids;
end
$$;


--
-- Name: run_status(uuid[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.run_status(run_ids uuid[]) RETURNS TABLE(id uuid, name text, state text, phase text, outcome text, step text, attempts integer, error jsonb, reason text, created_at timestamp with time zone, started_at timestamp with time zone, finished_at timestamp with time zone, total integer, succeeded integer, failed integer, cancelled integer)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
begin
  return query
  select r.id, r.name, r.state, r.phase, r.outcome, b.name, b.attempt, b.error,
         (select j.reason from holdfast.journal j
           where j.run_id = r.id and j.step_id is null order by j.id desc limit 1),
         r.created_at, r.started_at, r.finished_at, r.total, r.succeeded, r.failed, r.cancelled
    from holdfast.run_list r
    left join lateral (
      select n.name, s.attempt, s.error
        from holdfast.run_steps n
       cross join lateral (select * from holdfast.step_list l where l.id = n.step_id offset 0) s  -- each by primary key
       where n.run_id = r.id and s.outcome in ('failed', 'cancelled')
       order by s.outcome = 'failed' desc, s.id
       limit 1) b on r.failed + r.cancelled > 0
   where r.id = any (run_status.run_ids);
end
$$;


--
-- Name: schedule_definition(holdfast.schedules); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.schedule_definition(schedule holdfast.schedules) RETURNS jsonb
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT jsonb_strip_nulls((to_jsonb(schedule) - ARRAY['id'::text, 'tenant'::text, 'name'::text, 'words'::text, 'version'::text, 'after_at'::text, 'upcoming'::text, 'is_planned'::text, 'next_at'::text, 'wake_at'::text, 'last_at'::text, 'ended_at'::text, 'broken'::text, 'paused_at'::text, 'paused_by'::text, 'pause_reason'::text, 'defined_at'::text, 'shift'::text])) AS jsonb_strip_nulls;
END;


--
-- Name: schedule_shift(text, text, interval); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.schedule_shift(tenant text, name text, spread interval) RETURNS interval
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT
         CASE
             WHEN (spread < '00:00:00.002'::interval) THEN '00:00:00'::interval
             ELSE make_interval(secs => ((mod(((hashtextextended(((tenant || '
'::text) || name), (0)::bigint))::numeric + '9223372036854775808'::numeric), floor((EXTRACT(epoch FROM spread) * (1000)::numeric))) / 1000.0))::double precision)
         END AS make_interval;
END;


--
-- Name: schedule_to_change(text, text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.schedule_to_change(name text, tenant text, reason text, actor text) RETURNS holdfast.schedules
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  schedule holdfast.schedules;
begin
  perform holdfast.check_name('the name of a schedule', coalesce(schedule_to_change.name, ''));
  perform holdfast.check_tenant(schedule_to_change.tenant);  -- guard: tenant
  perform holdfast.check_reason(schedule_to_change.reason);
  perform holdfast.check_name('actor', schedule_to_change.actor);
  select s.* into schedule from holdfast.schedules s
   where s.tenant = schedule_to_change.tenant and s.name = schedule_to_change.name
     for update;
  if schedule.id is null then
    perform holdfast.refuse('RN004', format('there is no schedule %s of tenant %s', schedule_to_change.name,
                                            schedule_to_change.tenant),
                            '`holdfast schedules list` shows them', schedule_to_change.name);
  end if;
  return schedule;
end
$$;


--
-- Name: schedule_violations(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.schedule_violations() RETURNS TABLE(invariant text, subject text, detail text)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  select 'schedule_has_a_next_tick', format('schedule %s of %s', s.name, s.tenant),
         'it has none, and is neither new, paused, ended nor broken'
    from holdfast.schedules s
   where s.wake_at is null and num_nonnulls(s.paused_at, s.ended_at, s.broken) = 0
  union all
  select 'tick_is_recorded', format('schedule %s of %s', s.name, s.tenant),
         format('its tick at %s is handled and has no row', s.last_at)
    from holdfast.schedules s
   where s.last_at > holdfast.clock() - interval '7 days'  -- retention keeps them longer
     and not exists (select from holdfast.ticks t
                      where t.tenant = s.tenant and t.name = s.name and t.at = s.last_at)
  union all
  select 'planned_ticks_ascend', format('schedule %s of %s', s.name, s.tenant),
         format('tick %s is planned after %s', u.at, u.before)
    from holdfast.schedules s
   cross join lateral (select p.at, lag(p.at, 1, s.after_at) over (order by p.n) as before
                         from unnest(s.upcoming) with ordinality p (at, n)) u
   where u.at <= u.before
  union all
  select 'tick_is_fired', format('schedule %s of %s', s.name, s.tenant),
         format('due at %s, but no worker fired it', s.wake_at)
    from holdfast.schedules s
   where s.wake_at < holdfast.clock() - interval '10 minutes'
     and exists (select from holdfast.workers w
                  where w.started_at < holdfast.clock() - interval '10 minutes' and w.tenants is null
                    and holdfast.is_live_worker(w.seen_at, holdfast.clock()))
$$;


--
-- Name: set_actor(text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.set_actor(kind text DEFAULT ''::text, name text DEFAULT ''::text, reason text DEFAULT ''::text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform set_config('holdfast.actor_kind', set_actor.kind, true),
          set_config('holdfast.actor', set_actor.name, true),
          set_config('holdfast.reason', coalesce(set_actor.reason, ''), true);
end
$$;


--
-- Name: set_pause(text, text[], timestamp with time zone, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.set_pause(name text, tenants text[], until timestamp with time zone, actor text, reason text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  is_family constant boolean := set_pause.name like '%:*';
  keeps_own constant boolean := is_family and set_pause.until is not null;  -- the family's stands in its rule
  ids bigint[];
begin
  if not is_family and set_pause.until is not null then
    insert into holdfast.limit_states (name, tenant)
    select set_pause.name, u.tenant from unnest(set_pause.tenants) u (tenant) order by 2
    on conflict on constraint limit_states_name_tenant_key do nothing;
  end if;
  ids := array(
    select s.id
      from holdfast.limit_states s
     where s.tenant = any (set_pause.tenants)
       and case when is_family then holdfast.limit_family(s.name) = set_pause.name else s.name = set_pause.name end
     order by s.id
       for update);
  if is_family then
    update holdfast.limits r
       set paused_until = set_pause.until, paused_by = set_pause.actor, pause_reason = set_pause.reason
     where r.name = set_pause.name and r.tenant = any (set_pause.tenants);
  end if;
  if cardinality(ids) = 0 and not exists (
       select from holdfast.limits r where r.name = set_pause.name and r.tenant = any (set_pause.tenants)) then
    perform holdfast.refuse('RN004', format('there is no limit %s', set_pause.name),
                            'holdfast.limit_list lists them; define_limit makes one');
  end if;
  update holdfast.limit_states s
     set paused_until = case when keeps_own then s.paused_until else set_pause.until end,
         paused_by = case when keeps_own then s.paused_by else set_pause.actor end,
         pause_reason = case when keeps_own then s.pause_reason else set_pause.reason end,
         failures = case when set_pause.until is null then 0 else s.failures end,
         open_until = case when set_pause.until is not null then s.open_until end,
         open_for = case when set_pause.until is not null then s.open_for end,
         probe_id = case when set_pause.until is not null then s.probe_id end
   where s.id = any (ids);
  perform holdfast.refresh_limits(ids, holdfast.clock());
end
$$;


--
-- Name: set_retention(interval, text, text, text, text, text, text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.set_retention(keep interval, outcome text DEFAULT NULL::text, machine text DEFAULT NULL::text, queue text DEFAULT NULL::text, tenant text DEFAULT NULL::text, what text DEFAULT 'runs'::text, reason text DEFAULT NULL::text, actor text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform holdfast.check_retention(set_retention.what, set_retention.machine, set_retention.queue,
                                   set_retention.outcome, set_retention.keep);
  perform holdfast.check_reason(set_retention.reason);
  perform holdfast.check_name('actor', set_retention.actor);
  perform holdfast.change_retention(
    set_retention.what, t.owner, set_retention.machine, set_retention.queue, set_retention.outcome, set_retention.keep,
    false, set_retention.reason, set_retention.actor)
     from unnest(holdfast.retention_tenants(set_retention.what, set_retention.tenant)) t (owner);
end
$$;


--
-- Name: set_retry_budget(holdfast.steps, integer, boolean, interval); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.set_retry_budget(step holdfast.steps, tries integer DEFAULT NULL::integer, retryable boolean DEFAULT NULL::boolean, backoff interval DEFAULT NULL::interval) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  law constant holdfast.policies := (
    select p from holdfast.step_policy(step.policy, step.kind, step.machine, step.tenant) p);
  all_tries constant int := coalesce(set_retry_budget.tries, law.tries);
  is_retryable constant boolean := coalesce(set_retry_budget.retryable, law.retryable);
  rests constant boolean := exists (select from holdfast.machine_states t
                                     where t.machine = step.machine and t.state = step.state
                                       and t.phase = 'open_or_over');
  waits_again constant boolean := rests and is_retryable and (all_tries is null or step.failures < all_tries)
    and (step.finished_at is null or coalesce(step.failures >= law.tries, false)
         or coalesce(set_retry_budget.retryable, false));
  retry_at timestamptz;
begin
  if set_retry_budget.backoff is not null and not waits_again then
    perform holdfast.refuse('RN010', format('step %s is %s and does not wait for a retry', step.id, step.state),
                            'set a backoff only on a step that failed and will be retried');
  end if;
  if waits_again and step.finished_at is not null and step.run_id is not null then
    perform holdfast.set_actor('user', session_user::text, format('step %s is retried', step.id));
    perform holdfast.reopen_run(step.run_id, clock);
    perform holdfast.set_actor();
  end if;
  if waits_again then
    step.failed_at := coalesce(step.failed_at, step.claimed_at, clock);
    retry_at := coalesce(step.failed_at + set_retry_budget.backoff, step.due_at, step.parked_due_at,
                         step.failed_at + holdfast.backoff(law.policy, step.failures));
    perform holdfast.check_due(retry_at);
  end if;
  update holdfast.steps s  -- without an actor: the run is recounted, and closed if it has no live step
     set policy = case when (all_tries, is_retryable) is distinct from (law.tries, law.retryable)
                       then holdfast.policy_with_tries(law.policy, all_tries, is_retryable) else s.policy end,
         finished_at = case when not rests then s.finished_at
                            when not waits_again then coalesce(s.finished_at, clock) end,
         failed_at = step.failed_at,
         due_at = case when not rests then s.due_at when s.parked_due_at is null then retry_at end,
         parked_due_at = case when not rests then s.parked_due_at when s.parked_due_at is not null then retry_at end,
         parked_for = case when not rests or waits_again then s.parked_for end,
         limited_by = case when not rests or waits_again then s.limited_by end
   where s.id = step.id;
  perform holdfast.wake(array[step.queue]);
end
$$;


--
-- Name: settle_batch(bigint[], bigint[], jsonb[], jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.settle_batch(step_ids bigint[], lease_ids bigint[], results jsonb[], others jsonb DEFAULT '[]'::jsonb) RETURNS SETOF holdfast.settled_step
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  rest jsonb := settle_batch.others;
  run_ids uuid[];
  ids bigint[];
  states text[];
begin
  perform holdfast.set_actor('worker', holdfast.lease_holder(settle_batch.step_ids, settle_batch.lease_ids, rest));
  if rest <> '[]' and settle_batch.step_ids <> '{}' and exists (select from holdfast.limit_states) then
    perform holdfast.check_outcomes(rest);
    perform holdfast.lock_held(settle_batch.step_ids, rest);
  end if;
  select array_agg(s.id), array_agg(s.state), array_agg(s.run_id) filter (where s.run_id is not null)
    into ids, states, run_ids
    from holdfast.succeed_steps(settle_batch.step_ids, settle_batch.lease_ids, settle_batch.results, allowed, clock) s;
  if run_ids is not null then
    perform holdfast.tally_runs(
      array(select (r.id, 0, -count(*), count(*), 0, 0)::holdfast.run_delta from unnest(run_ids) r (id) group by r.id)
        || holdfast.admit_children(ids, clock), clock);  -- guard: children-first
  end if;
  return query select u.id, 'succeeded', u.state from unnest(ids, states) u (id, state);
  if coalesce(cardinality(ids), 0) < cardinality(settle_batch.step_ids) then
    rest := rest || holdfast.left_unsettled(settle_batch.step_ids, settle_batch.lease_ids, settle_batch.results);
  end if;
  if rest <> '[]' then
    return query select * from holdfast.settle_others(rest, allowed, clock);
  end if;
  perform holdfast.set_actor();
end
$$;


--
-- Name: settle_others(jsonb, text[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.settle_others(outcomes jsonb, allowed text[], clock timestamp with time zone) RETURNS SETOF holdfast.settled_step
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
  moves holdfast.step_move[];
  settled holdfast.settled_step[];
begin
  perform holdfast.check_outcomes(settle_others.outcomes);
  select array_agg((o.step_id, o.lease_id, e.event,
           settle_others.clock + greatest('0', case
             when e.event = 'snoozed' then least(o.retry_after, '100 years')
             when e.event = 'retried' and o.retry_after is null then holdfast.backoff(p.policy, s.failures + 1)
             when e.event = 'retried' then
               least(o.retry_after, p.longest_retry_after, '100 years')  -- guard: retry_after
           end),
           o.result, coalesce(odd.error, o.error), o.cursor)::holdfast.step_move)
    into moves
    from jsonb_array_elements(settle_others.outcomes) j,
         lateral jsonb_to_record(j) o (
           step_id bigint, lease_id bigint, outcome text, result jsonb, error jsonb, retry_after interval,
           cursor jsonb, cursor_was jsonb)
    cross join lateral (  -- offset 0: one by one and by primary key, whatever the statistics say
      select h.* from holdfast.steps h
       where h.id = o.step_id
         and h.lease_id = o.lease_id  -- guard: lease
      offset 0) s
    cross join lateral holdfast.step_policy(s.policy, s.kind, s.machine, s.tenant) p,
    lateral (select case o.outcome
               when 'done' then holdfast.too_large('result', o.result)
               when 'continue' then holdfast.too_large('cursor', o.cursor)
               else holdfast.too_large('error', o.error) end as error) odd,
    lateral (select case
               when o.outcome = 'fail' or (o.outcome in ('done', 'continue') and odd.error is not null) then 'failed'
               when o.outcome = 'retry' and (
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
$_$;


--
-- Name: settle_steps(jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.settle_steps(outcomes jsonb) RETURNS SETOF holdfast.settled_step
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
begin
  perform holdfast.check_outcomes(settle_steps.outcomes);
  return query
  select b.*
    from (select array_agg(o.step_id) filter (where o.outcome = 'done') as step_ids,
                 array_agg(o.lease_id) filter (where o.outcome = 'done') as lease_ids,
                 array_agg(coalesce(o.result, 'null')) filter (where o.outcome = 'done') as results
            from jsonb_to_recordset(settle_steps.outcomes) o (step_id bigint, lease_id bigint,
                                                              outcome text, result jsonb)) d,
         lateral holdfast.settle_batch(
           coalesce(d.step_ids, '{}'), coalesce(d.lease_ids, '{}'), coalesce(d.results, '{}'),
           jsonb_path_query_array(settle_steps.outcomes, '$[*] ? (@.outcome != "done")')) b;
end
$_$;


--
-- Name: shortest_keep(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.shortest_keep() RETURNS interval
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT min(r.keep) AS min
    FROM holdfast.retention_rules r
   WHERE ((r.what = 'runs'::text) AND (NOT (r.is_default AND (EXISTS ( SELECT
            FROM holdfast.retention_rules a
           WHERE ((a.what = 'runs'::text) AND (NOT a.is_default) AND (a.tenant = '*'::text) AND (num_nonnulls(a.machine, a.queue, a.outcome) = 0)))))));
END;


--
-- Name: stage_steps(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.stage_steps() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  create temporary table if not exists staged_steps (
    id bigint,  -- one that the login reserved; if null, the step gets own_id
    kind text not null,
    input jsonb not null default '{}',
    name text,
    queue text,
    priority smallint not null default 0,
    due_at timestamptz,
    unique_key text,
    policy text,
    limits text[],
    weight numeric,
    own_id bigint not null default nextval('holdfast.step_ids')
  ) on commit drop;
  create temporary table if not exists staged_edges (step_id bigint not null, next_id bigint not null) on commit drop;
  perform holdfast.check_staging();
  -- uncompressed, so that pg_column_size gives the size of the JSON
  alter table pg_temp.staged_steps alter column input set storage external;
  -- Not on own_id: the column tells who chose an id.
  execute format('grant insert (id, kind, input, name, queue, priority, due_at, unique_key, policy, limits, '
                 'weight) '
                 'on pg_temp.staged_steps to %I', session_user);
  execute format('grant insert on pg_temp.staged_edges to %I', session_user);
end
$$;


--
-- Name: start_run(text, text, text, jsonb, jsonb, text, text, uuid, interval); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.start_run(machine text, name text, step_machine text, steps jsonb DEFAULT '[]'::jsonb, input jsonb DEFAULT '{}'::jsonb, key text DEFAULT NULL::text, tenant text DEFAULT 'default'::text, of_run uuid DEFAULT NULL::uuid, key_for interval DEFAULT NULL::interval) RETURNS uuid
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  run_id uuid;
begin
  perform holdfast.set_actor('api', session_user::text);
  run_id := holdfast.begin_run(start_run.machine, start_run.name, start_run.step_machine, start_run.steps,
                               start_run.input, start_run.key, start_run.tenant, start_run.of_run, start_run.key_for);
  perform holdfast.set_actor();
  return run_id;
end
$$;


--
-- Name: start_silent_steps(holdfast.step_move[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.start_silent_steps(moves holdfast.step_move[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  silent constant bigint[] := array(
    select v.step_id
      from unnest(start_silent_steps.moves) v
     cross join lateral (  -- offset 0: one by one and by primary key, whatever the statistics say
       select h.machine, h.state from holdfast.steps h
        where h.id = v.step_id and h.lease_id is not distinct from v.lease_id offset 0) s
      join holdfast.machine_moves g on g.machine = s.machine and g.from_state = s.state and g.event = 'started'
      join holdfast.machine_moves m on m.machine = g.machine and m.from_state = g.to_state and m.event = v.event
     where not exists (select from holdfast.machine_moves d
                        where d.machine = s.machine and d.from_state = s.state and d.event = v.event)
     order by v.step_id);
begin
  if silent <> '{}' then
    update holdfast.steps s
       set state = g.to_state, last_event = 'started'
      from holdfast.machine_moves g
     where s.id = any (silent) and g.machine = s.machine and g.from_state = s.state and g.event = 'started';
  end if;
end
$$;


--
-- Name: start_step(text, text, jsonb, text, text, text, timestamp with time zone, integer, text, text, text, text, text[], numeric, interval); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.start_step(machine text, kind text, input jsonb DEFAULT '{}'::jsonb, queue text DEFAULT NULL::text, key text DEFAULT NULL::text, unique_key text DEFAULT NULL::text, due_at timestamp with time zone DEFAULT NULL::timestamp with time zone, priority integer DEFAULT 0, tenant text DEFAULT 'default'::text, policy text DEFAULT NULL::text, parked_for text DEFAULT NULL::text, actor text DEFAULT NULL::text, limits text[] DEFAULT NULL::text[], weight numeric DEFAULT NULL::numeric, key_for interval DEFAULT NULL::interval) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column  -- `on conflict` cannot qualify its columns
declare
  clock constant timestamptz := holdfast.clock();
  due timestamptz := coalesce(start_step.due_at, clock);
  parked_due timestamptz;
  kind_queue text;
  own_policy text;
  kind_limits text[];
  kind_weight text;
  call_weight numeric;
  own_limits text[];
  own_weight numeric;
  is_known_queue boolean;
  has_rules boolean;
  into_queue text;
  hash bytea;
  own_id bigint;  -- allocated with the key
  step_id bigint;
  step_machine text;
begin
  if (holdfast.is_name(start_step.kind) and start_step.priority between 0 and 9
      and coalesce(pg_column_size(start_step.input) <= 1048576 and holdfast.is_in_reach(start_step.due_at), true)
      and coalesce(holdfast.is_name(start_step.key, 400), true)
      and coalesce(holdfast.is_name(start_step.unique_key, 400), true)) is not true then  -- a call costs more
    perform holdfast.check_start(start_step.kind, start_step.input, start_step.priority);
    perform holdfast.check_name('key', start_step.key, 400);
    perform holdfast.check_name('unique_key', start_step.unique_key, 400);
    perform holdfast.check_due(start_step.due_at);
  end if;
  perform holdfast.check_tenant(start_step.tenant);
  select k.queue, k.policy, k.limits, k.weight, k.call_weight
    into kind_queue, own_policy, kind_limits, kind_weight, call_weight
    from holdfast.kinds k  -- as kinds_of has it, at half the cost
   where k.kind = start_step.kind and k.tenant = case
           when exists (select from holdfast.kinds o where o.kind = start_step.kind and o.tenant = start_step.tenant)
           then start_step.tenant else '*' end;
  into_queue := coalesce(start_step.queue, kind_queue, 'default');
  if start_step.machine is distinct from 'work.task' then  -- a task begins due: spare the lookup
    due := (select case when t.phase = 'open' then due end from holdfast.machine_states t
             where t.machine = start_step.machine and t.state = holdfast.initial_state(start_step.machine, 'step'));
  end if;
  if start_step.policy is not null then
    perform holdfast.check_policies(array[start_step.policy]);
    own_policy := coalesce((select p.policy from holdfast.policies p
                             where p.policy = holdfast.policy_name(start_step.policy, start_step.tenant)),
                           start_step.policy);
  end if;
  if start_step.parked_for is not null then
    perform holdfast.check_parking(start_step.parked_for);
    if due is null then
      perform holdfast.refuse(
        'RN005', format('a step of %s does not begin due and cannot be parked', start_step.machine),
        'park it when it is admitted');
    end if;
    parked_due := due;
    due := null;
  end if;
  if start_step.key_for is not null then
    perform holdfast.check_key_for(start_step.key, start_step.key_for);
  end if;
  if start_step.key is not null then
    -- Without the machine for a task, so that keys of earlier releases stay valid. No name contains a line break.
    hash := sha256(convert_to(
      case when start_step.machine = 'work.task' then '' else start_step.machine || E'\n' end
      || start_step.kind || ' ' || coalesce(start_step.input, '{}')::text, 'UTF8'));
    own_id := nextval('holdfast.step_ids');
    step_id := holdfast.take_key(start_step.tenant, start_step.key, own_id::text, hash, start_step.key_for)::bigint;
    if step_id <> own_id then
      return step_id;
    end if;
  end if;
  select exists (select from holdfast.queues q where q.queue = into_queue and q.top_priority >= start_step.priority),
         exists (select from holdfast.limits)
    into is_known_queue, has_rules;
  if has_rules or num_nonnulls(start_step.limits, start_step.weight, kind_limits, kind_weight, call_weight) > 0 then
    own_limits := holdfast.limits_for(start_step.limits, kind_limits, start_step.input);
    own_weight := holdfast.weight_for(start_step.weight, kind_weight, call_weight, start_step.input);
    perform holdfast.check_charge(own_limits, own_weight, into_queue, start_step.kind, start_step.tenant);
  end if;
  if not is_known_queue then
    perform holdfast.check_name('queue', into_queue);  -- an existing queue was checked when it was made
    perform holdfast.remember_queues(array[into_queue], array[start_step.priority]);
  end if;
  loop
    insert into holdfast.steps (id, machine, state, kind, queue, tenant, policy, unique_key, priority, due_at,
                                parked_due_at, parked_for, created_at, input, limits, weight)
    values (coalesce(own_id, nextval('holdfast.step_ids')), start_step.machine,
            (select t.state from holdfast.machine_states t where t.machine = start_step.machine and t.is_initial),
            start_step.kind, into_queue, start_step.tenant, own_policy, start_step.unique_key, start_step.priority, due,
            parked_due, start_step.parked_for, clock, coalesce(start_step.input, '{}'), own_limits, own_weight)
    on conflict (tenant, unique_key) where unique_key is not null and finished_at is null do nothing
    returning id into step_id;
    exit when found;
    select s.id, s.machine into step_id, step_machine from holdfast.steps s
     where s.tenant = start_step.tenant and s.unique_key = start_step.unique_key and s.finished_at is null;
    continue when not found;  -- it ended in between: insert again
    if step_machine <> start_step.machine then
      perform holdfast.refuse(
        'RN003', format('unique_key %s is in use by step %s of %s', start_step.unique_key, step_id, step_machine),
        format('use another unique_key for a step of %s', start_step.machine));
    end if;
    update holdfast.keys k set id = step_id::text where k.tenant = start_step.tenant and k.key = start_step.key;
    return step_id;
  end loop;
  if start_step.actor is not null then
    perform holdfast.check_name('actor', start_step.actor);
    insert into holdfast.journal (at, tenant, machine, from_state, event, to_state, actor_kind, actor, step_id, attempt,
                                  login)
    select clock, s.tenant, s.machine, 'new', 'created', s.state,
           coalesce(nullif(current_setting('holdfast.actor_kind', true), ''), 'api'), start_step.actor, s.id, s.attempt,
           case when start_step.actor <> session_user then session_user end
      from holdfast.steps s where s.id = step_id;
  end if;
  -- Checked here too: usually no worker sleeps, and the call is a tenth of a start.
  if due is not null and exists (select from holdfast.workers w where w.is_asleep and w.queue = into_queue) then
    perform holdfast.wake(array[into_queue]);
  end if;
  return step_id;
end
$$;


--
-- Name: start_task(text, jsonb, text, text, text, timestamp with time zone, integer, text, text[], numeric, interval); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.start_task(name text, input jsonb DEFAULT '{}'::jsonb, queue text DEFAULT NULL::text, key text DEFAULT NULL::text, unique_key text DEFAULT NULL::text, due_at timestamp with time zone DEFAULT NULL::timestamp with time zone, priority integer DEFAULT 0, tenant text DEFAULT 'default'::text, limits text[] DEFAULT NULL::text[], weight numeric DEFAULT NULL::numeric, key_for interval DEFAULT NULL::interval) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  return holdfast.start_step('work.task', start_task.name, start_task.input, start_task.queue, start_task.key,
                             start_task.unique_key, start_task.due_at, start_task.priority, start_task.tenant,
                             limits => start_task.limits, weight => start_task.weight,
                             key_for => start_task.key_for);
end
$$;


--
-- Name: start_tasks(jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.start_tasks(tasks jsonb) RETURNS SETOF bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  task record;
  ids bigint[] := '{}';
  odd text;
begin
  if jsonb_typeof(start_tasks.tasks) is distinct from 'array' then
    perform holdfast.refuse('RN005', 'tasks are an array of objects',
                            '[{"name": "mail", "input": {"to": "a@b"}}]', 'tasks');
  end if;
  select k into odd
    from jsonb_array_elements(start_tasks.tasks) o, lateral jsonb_object_keys(
           case when jsonb_typeof(o) = 'object' then o else jsonb_build_object(left(o::text, 50), 0) end) k
   where k not in ('name', 'input', 'queue', 'key', 'unique_key', 'due_at', 'priority', 'tenant', 'limits',
                   'weight', 'key_for')
   limit 1;
  if odd is not null then
    perform holdfast.refuse('RN005', format('a task has no %s', odd),
                            'it has name, input, queue, key, unique_key, due_at, priority, tenant, limits, weight '
                            'and key_for');
  end if;
  for task in
    select * from jsonb_to_recordset(start_tasks.tasks) o (
      name text, input jsonb, queue text, key text, unique_key text, due_at timestamptz, priority int, tenant text,
      limits text[], weight numeric, key_for interval)
  loop
    ids := ids || holdfast.start_task(task.name, coalesce(task.input, '{}'), task.queue, task.key,
                                      task.unique_key, task.due_at,
                                      coalesce(task.priority, 0), coalesce(task.tenant, 'default'),
                                      task.limits, task.weight, task.key_for);
  end loop;
  return query select unnest(ids);
end
$$;


--
-- Name: start_tick(holdfast.schedules, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.start_tick(schedule holdfast.schedules, clock timestamp with time zone) RETURNS text[]
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
  actor_kind constant text := current_setting('holdfast.actor_kind', true);
  actor constant text := current_setting('holdfast.actor', true);
  reason constant text := current_setting('holdfast.reason', true);
  ids text[];
begin
  execute format('select %s($1, $2, $3, $4)', (select holdfast.face_name(f.starts) from holdfast.faces f
                                                where f.face = schedule.face))
    into ids using schedule.target, schedule.input, schedule.options, schedule.tenant;
  if coalesce(ids, '{}') = '{}' then
    perform holdfast.refuse('RN005', format('the face %s started nothing for %s', schedule.face, schedule.target),
                            'check the target and its options', 'target');
  end if;
  insert into holdfast.journal (at, tenant, machine, from_state, event, to_state, actor_kind, actor, step_id, attempt,
                                reason, login)
  select start_tick.clock, s.tenant, s.machine, 'new', 'created', s.state, actor_kind, actor, s.id, s.attempt, reason,
         case when actor_kind = 'user' and actor <> session_user then session_user end
    from holdfast.steps s
   where s.id = any (array(select u.id::bigint from unnest(ids) u (id) where u.id ~ '^[0-9]{1,18}$'))
     and s.created_at >= start_tick.clock and s.last_event is null;  -- a face may return what was there before
  return ids;
end
$_$;


--
-- Name: started_ids(holdfast.schedules); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.started_ids(schedule holdfast.schedules) RETURNS text[]
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
begin
  return array(
    select i.id
      from (select t.ids from holdfast.ticks t
             where t.tenant = schedule.tenant and t.name = schedule.name and t.outcome = 'started'
               and t.face = schedule.face
             order by t.fired_at desc
             limit 10) t
     cross join lateral unnest(t.ids) i (id));
end
$$;


--
-- Name: step_events(bigint); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.step_events(of_step bigint) RETURNS TABLE(id bigint, at timestamp with time zone, kind text, step_id bigint, step text, event text, from_state text, to_state text, actor_kind text, actor text, message text, payload jsonb, attempt integer)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
begin
  return query
  select y.id, y.at, y.entry, y.step_id, null::text, y.what, y.from_state, y.to_state, y.actor_kind, y.actor, y.said,
         y.payload, y.attempt
    from holdfast.step_story y
   where y.step_id = step_events.of_step
   order by y.id;
end
$$;


--
-- Name: step_results(bigint[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.step_results(step_ids bigint[]) RETURNS TABLE(step_id bigint, state text, outcome text, result jsonb, error jsonb)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return query
  select s.id, s.state, case when s.finished_at is not null then t.outcome end, s.result, s.error
    from holdfast.steps s
    join holdfast.machine_states t on t.machine = s.machine and t.state = s.state
   where s.id = any (step_results.step_ids) and holdfast.matches_any(allowed, s.tenant);
end
$$;


--
-- Name: step_status(bigint[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.step_status(step_ids bigint[]) RETURNS TABLE(id bigint, name text, state text, phase text, outcome text, step text, attempts integer, error jsonb, reason text, created_at timestamp with time zone, started_at timestamp with time zone, finished_at timestamp with time zone, total integer, succeeded integer, failed integer, cancelled integer)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
begin
  return query
  select s.id, s.kind, s.state, s.phase, s.outcome, null::text, s.attempt, s.error,
         (select j.reason from holdfast.journal j where j.step_id = s.id order by j.id desc limit 1),
         s.created_at, s.claimed_at, s.finished_at, null::int, null::int, null::int, null::int
    from holdfast.step_list s
   where s.id = any (step_status.step_ids);
end
$$;


--
-- Name: store_plan(holdfast.schedules, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.store_plan(schedule holdfast.schedules, clock timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  is_over constant boolean := schedule.is_planned and schedule.upcoming = '{}';
  due_at constant timestamptz := schedule.upcoming[1] + schedule.shift;
begin
  update holdfast.schedules s
     set after_at = schedule.after_at, last_at = schedule.last_at, upcoming = schedule.upcoming,
         is_planned = schedule.is_planned, words = schedule.words, next_at = due_at,
         ended_at = case when is_over then store_plan.clock end,
         wake_at = case when s.paused_at is not null or is_over then null
                        when holdfast.is_all_due(schedule, store_plan.clock) then store_plan.clock + interval '1 s'
                        when holdfast.lacks_ticks(schedule, store_plan.clock)
                        then least(due_at, store_plan.clock + interval '1 s')
                        else due_at end
   where s.id = schedule.id;
  if is_over and schedule.ended_at is null then
    perform holdfast.note_schedule(schedule.tenant, schedule.name, 'ended', 'scheduler', 'scheduler', null);
  end if;
end
$$;


--
-- Name: succeed_steps(bigint[], bigint[], jsonb[], text[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.succeed_steps(step_ids bigint[], lease_ids bigint[], results jsonb[], allowed text[], clock timestamp with time zone) RETURNS TABLE(id bigint, run_id uuid, state text)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_hashjoin TO 'on'
    SET enable_nestloop TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
begin
  return query
  with moves as materialized (  -- a few rows, read once: lookups per step took a tenth of a settle
    select m.machine, m.from_state, m.to_state from holdfast.machine_moves m where m.event = 'succeeded')
  update holdfast.steps s
     set state = m.to_state, last_event = 'succeeded', result = o.result, error = null,
         finished_at = succeed_steps.clock, lease_id = null, lease_owner = null, lease_until = null, parked_for = null,
         holds = null, charge = null
    from (select * from unnest(succeed_steps.step_ids, succeed_steps.lease_ids, succeed_steps.results)
                     as u (step_id, lease_id, result)
           order by u.step_id) o,  -- whichever side is hashed, steps are locked in the order of their ids
         moves m
   where s.id = any (succeed_steps.step_ids) and s.id = o.step_id
     and s.lease_id = o.lease_id  -- guard: lease
     and coalesce(pg_column_size(o.result), 0) <= 1048576
     and holdfast.matches_any(succeed_steps.allowed, s.tenant)  -- guard: tenant
     and m.machine = s.machine and m.from_state = s.state
  returning s.id, s.run_id, s.state;
end
$$;


--
-- Name: sweep(integer); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.sweep(batch integer DEFAULT 1000) RETURNS TABLE(steps bigint, runs bigint, keys bigint, ticks bigint, months integer, is_through boolean, wait interval)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  return query select c.* from holdfast.sweep_chunk(sweep.batch, false) c;
end
$$;


--
-- Name: sweep_chunk(integer, boolean); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.sweep_chunk(batch integer, at_once boolean) RETURNS TABLE(steps bigint, runs bigint, keys bigint, ticks bigint, months integer, is_through boolean, wait interval)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  sweep holdfast.retention_sweep;
  was holdfast.retention_sweep;
  shortest constant interval := holdfast.shortest_keep();
  before bigint;
  is_over boolean := false;
begin
  if sweep_chunk.batch is null or sweep_chunk.batch not between 1 and 10000 then
    perform holdfast.refuse('RN005', format('batch must be 1 to 10000, got %s', sweep_chunk.batch), 'use 1000',
                            'batch');
  end if;
  select w.* into sweep from holdfast.retention_sweep w for update skip locked;  -- guard: one
  if sweep.begins_at is null then
    return query select 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0, null::boolean, interval '1 minute';
    return;
  end if;
  if not sweep_chunk.at_once and greatest(sweep.begins_at, sweep.next_at) > clock then
    return query select 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0, true,
                        greatest(sweep.begins_at, sweep.next_at) - clock;
    return;
  end if;
  if sweep.next_at is not null or sweep.began_at is null then
    sweep := holdfast.begun_sweep(sweep, clock);
  end if;
  was := sweep;
  loop
    before := sweep.steps + sweep.runs + sweep.keys + sweep.ticks;
    if sweep.run_left is not null then
      sweep := holdfast.prune_rest_of_run(sweep, sweep_chunk.batch);
    elsif sweep.phase = 'steps' then
      sweep := holdfast.prune_steps(sweep, sweep_chunk.batch, clock - shortest, clock);
    elsif sweep.phase = 'runs' then
      sweep := holdfast.prune_runs(sweep, sweep_chunk.batch, clock - shortest, clock);
    else
      sweep := holdfast.prune_ticks(holdfast.prune_rest(sweep, sweep_chunk.batch, clock), sweep_chunk.batch, clock);
      if before = sweep.steps + sweep.runs + sweep.keys + sweep.ticks then
        is_over := true;
      end if;
    end if;
    exit when before < sweep.steps + sweep.runs + sweep.keys + sweep.ticks or is_over
           or clock_timestamp() > statement_timestamp() + interval '50 ms';
  end loop;
  sweep.busy := sweep.busy + (clock_timestamp() - statement_timestamp());
  if is_over then
    -- Rules for days need no sweep each minute, and a sweep that takes long rests twenty times as long.
    sweep.ended_at := clock;
    sweep.next_at := clock + greatest(least(coalesce(shortest / 100, '1 hour'), '1 hour'), '1 minute', sweep.busy * 20);
  end if;
  update holdfast.retention_sweep w
     set phase = sweep.phase, step_id = sweep.step_id, run_id = sweep.run_id, run_left = sweep.run_left,
         next_at = sweep.next_at, began_at = sweep.began_at, ended_at = sweep.ended_at,
         busy = sweep.busy, steps = sweep.steps, runs = sweep.runs, keys = sweep.keys, ticks = sweep.ticks;
  return query
  select sweep.steps - was.steps, sweep.runs - was.runs, sweep.keys - was.keys, sweep.ticks - was.ticks,
         case when is_over then cardinality(holdfast.old_months(clock)) else 0 end, is_over,
         coalesce(sweep.next_at - clock, '0');
end
$$;


--
-- Name: sweep_now(integer, boolean); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.sweep_now(batch integer DEFAULT 1000, afresh boolean DEFAULT false) RETURNS TABLE(steps bigint, runs bigint, keys bigint, ticks bigint, months integer, is_through boolean, wait interval)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform holdfast.check_all_tenants('sweep_now');
  if sweep_now.afresh then
    update holdfast.retention_sweep w
       set next_at = holdfast.clock()
     where w.is_only in (select l.is_only from holdfast.retention_sweep l for update skip locked);
  end if;
  return query select c.* from holdfast.sweep_chunk(sweep_now.batch, true) c;
end
$$;


--
-- Name: sweep_state(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.sweep_state() RETURNS TABLE(begins_at timestamp with time zone, next_at timestamp with time zone, began_at timestamp with time zone, ended_at timestamp with time zone, steps bigint, runs bigint, keys bigint, ticks bigint, blocked_month text, blocked_at timestamp with time zone)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  select w.begins_at, w.next_at, w.began_at, w.ended_at, w.steps, w.runs, w.keys, w.ticks, w.blocked_month, w.blocked_at
    from holdfast.retention_sweep w
$$;


--
-- Name: take_key(text, text, text, bytea, interval); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.take_key(tenant text, key text, id text, hash bytea, key_for interval) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column  -- `on conflict` cannot qualify its columns
declare
  clock constant timestamptz := holdfast.clock();
begin
  insert into holdfast.keys as k (tenant, key, id, input_hash, expires_at)
  values (take_key.tenant, take_key.key, take_key.id, take_key.hash, clock + take_key.key_for)
  on conflict (tenant, key) do update
    set id = excluded.id, input_hash = excluded.input_hash, expires_at = excluded.expires_at
    where k.expires_at <= clock;  -- guard: expired
  if found then
    return take_key.id;
  end if;
  return holdfast.id_of_key(take_key.tenant, take_key.key, take_key.hash);
end
$$;


--
-- Name: take_staged(text, uuid, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.take_staged(machine text DEFAULT 'work.task'::text, run_id uuid DEFAULT NULL::uuid, tenant text DEFAULT 'default'::text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  begins holdfast.machine_states;
  taken bigint;
  live bigint;
  queues text[];
  priorities int[];
begin
  perform holdfast.check_staging();
  perform holdfast.check_tenant(take_staged.tenant);
  perform holdfast.check_staged();
  -- Wait for parents that are being settled: that settle would not see the new edge. Steps are locked before runs.
  perform from holdfast.steps s
    where s.id = any (array(select e.step_id from pg_temp.staged_edges e)) order by s.id for share;
  if take_staged.run_id is not null then
    perform holdfast.check_open_run(take_staged.run_id, take_staged.tenant);
  end if;
  select t.* into begins from holdfast.machine_states t
   where t.machine = take_staged.machine and t.state = holdfast.initial_state(take_staged.machine, 'step');
  with waiting as (
    select e.next_id, count(distinct e.step_id)::int as waits
      from pg_temp.staged_edges e
      left join holdfast.steps p on p.id = e.step_id and p.finished_at is not null
      left join holdfast.machine_states t on t.machine = p.machine and t.state = p.state
     where holdfast.is_success(t.outcome) is not true
     group by e.next_id),
  started as (
    insert into holdfast.steps (id, run_id, machine, state, kind, queue, tenant, policy, unique_key,
                                priority, waits, due_at,
                                created_at, input, limits, weight)
    select coalesce(g.id, g.own_id), take_staged.run_id, begins.machine, begins.state, g.kind,
      coalesce(g.queue, k.queue, 'default'),
           take_staged.tenant,
           coalesce(case when g.policy is not null then (
                      select p.policy from holdfast.policies p
                       where p.policy = holdfast.policy_name(g.policy, take_staged.tenant)) end, g.policy, k.policy),
           g.unique_key, g.priority, coalesce(w.waits, 0),
           case when begins.phase = 'open' and w.waits is null then coalesce(g.due_at, clock) end, clock, g.input,
           case when g.limits is not null or d.limits is not null
                then holdfast.limits_for(g.limits, d.limits, g.input) end,
           case when g.weight is not null or d.weight is not null
                then holdfast.weight_for(g.weight, d.weight, d.call_weight, g.input) end
      from pg_temp.staged_steps g
      left join holdfast.kinds_of(take_staged.tenant) k on k.kind = g.kind
      left join (select distinct on (o.kind) o.kind, o.limits, o.weight, o.call_weight from holdfast.kinds o
                  where o.tenant in (take_staged.tenant, '*') order by o.kind, o.tenant = '*') d on d.kind = g.kind
      left join waiting w on w.next_id = g.id
    returning steps.due_at)
  select count(*), count(s.due_at) into taken, live from started s;
  if exists (select from holdfast.limits) then
    perform holdfast.check_charges(array(select coalesce(g.id, g.own_id) from pg_temp.staged_steps g));
  end if;
  if taken = 0 and exists (select from holdfast.runs r where r.id = take_staged.run_id and r.total = 0) then
    perform holdfast.refuse('RN005', format('run %s has no steps and none is staged', take_staged.run_id),
                            'copy its steps into pg_temp.staged_steps first');
  end if;
  if take_staged.run_id is not null then
    insert into holdfast.run_steps select take_staged.run_id, coalesce(g.id, g.own_id), g.name
      from pg_temp.staged_steps g;
  end if;
  insert into holdfast.edges select distinct e.step_id, e.next_id from pg_temp.staged_edges e order by 1, 2;
  select array_agg(q.queue), array_agg(q.priority) into queues, priorities
    from (select coalesce(g.queue, k.queue, 'default') as queue, max(g.priority)::int as priority
            from pg_temp.staged_steps g left
              join holdfast.kinds_of(take_staged.tenant) k on k.kind = g.kind group by 1) q;
  perform holdfast.remember_queues(queues, priorities);
  if take_staged.run_id is not null and taken > 0 then
    perform holdfast.set_actor('api', session_user::text);
    perform holdfast.tally_runs(array[(take_staged.run_id, taken, live, 0, 0, 0)::holdfast.run_delta], clock);
    perform holdfast.set_actor();
  end if;
  drop table pg_temp.staged_steps, pg_temp.staged_edges;
  perform holdfast.wake(queues);
  return taken;
end
$$;


--
-- Name: tally_runs(holdfast.run_delta[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.tally_runs(deltas holdfast.run_delta[], clock timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  closable uuid[];
begin
  with counted as (
    update holdfast.runs r
       set total = r.total + d.total,
           live = r.live + d.live,  -- guard: live
           succeeded = r.succeeded + d.succeeded,  -- guard: succeeded
           failed = r.failed + d.failed, cancelled = r.cancelled + d.cancelled
      from (select u.run_id, sum(u.total)::int as total, sum(u.live)::int as live, sum(u.succeeded)::int as succeeded,
                   sum(u.failed)::int as failed, sum(u.cancelled)::int as cancelled
              from unnest(tally_runs.deltas) u
             group by u.run_id
             order by u.run_id) d
     where r.id = d.run_id
    returning r.id, r.live, r.finished_at, r.moving)
  select array_agg(c.id) into closable
    from counted c
   where c.live = 0  -- guard: open-steps
     and c.finished_at is null and c.moving is null;
  if closable is not null then  -- guard: closing
    perform holdfast.close_runs(closable, tally_runs.clock);
  end if;
end
$$;


--
-- Name: tenants_to_define(text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.tenants_to_define(what text) RETURNS text[]
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  tenants constant text[] := coalesce(holdfast.allowed_tenants(), '{*}');
begin
  if tenants = '{}' then
    perform holdfast.refuse('RN009', format('%s may not act for any tenant and cannot define %s',
                                            session_user, tenants_to_define.what),
                            'an owner of the database can add a tenant to holdfast.role_tenants');
  end if;
  return tenants;
end
$$;


--
-- Name: tick_before(timestamp with time zone, interval, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.tick_before(anchor timestamp with time zone, every interval, clock timestamp with time zone) RETURNS timestamp with time zone
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT (anchor + (make_interval(secs => (EXTRACT(epoch FROM every))::double precision) * (floor((EXTRACT(epoch FROM (clock - anchor)) / EXTRACT(epoch FROM every))))::double precision));
END;


--
-- Name: tokens_at(holdfast.limit_states, holdfast.limits, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.tokens_at(state holdfast.limit_states, rule holdfast.limits, clock timestamp with time zone) RETURNS numeric
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT
         CASE
             WHEN ((rule).rate IS NULL) THEN NULL::numeric
             WHEN ((state).tokens IS NULL) THEN (rule).burst
             ELSE LEAST((rule).burst, ((state).tokens + trunc((round(((rule).rate * GREATEST((0)::numeric, EXTRACT(epoch FROM (clock - (state).filled_at)))), 18) / EXTRACT(epoch FROM (rule).per)), 12)))
         END AS "least";
END;


--
-- Name: tokens_suffice_at(holdfast.limit_states, holdfast.limits, numeric, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.tokens_suffice_at(state holdfast.limit_states, rule holdfast.limits, charge numeric, clock timestamp with time zone) RETURNS timestamp with time zone
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT
         CASE
             WHEN ((rule).rate IS NULL) THEN NULL::timestamp with time zone
             WHEN (holdfast.tokens_at(state, rule, clock) >= LEAST(charge, (rule).burst)) THEN clock
             ELSE ((state).filled_at + ('00:00:00.000001'::interval * (LEAST(ceil(((((LEAST(charge, (rule).burst) - (state).tokens) * EXTRACT(epoch FROM (rule).per)) * (1000000)::numeric) / (rule).rate)), '3000000000000000'::numeric))::double precision))
         END AS "case";
END;


--
-- Name: too_large(text, jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.too_large(what text, value jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  return case when pg_column_size(too_large.value) > 1048576 then jsonb_build_object(
    'type', 'TooLarge',
    'message', format('the %s has %s bytes; 1048576 is the limit', too_large.what,
                      pg_column_size(too_large.value))) end;
end
$$;


--
-- Name: unpark_served(text, text[], text[], text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.unpark_served(queue text, kinds text[], tenants text[], machine text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  served constant bigint[] := array(
    with recursive parked as (
      (select p.kind, p.tenant, p.machine
         from holdfast.steps p
        where p.queue = unpark_served.queue and p.parked_for = 'handler'
        order by p.kind, p.tenant
        limit 1)
      union all
      select n.kind, n.tenant, n.machine
        from parked b
       cross join lateral (
         select p.kind, p.tenant, p.machine
           from holdfast.steps p
          where p.queue = unpark_served.queue and p.parked_for = 'handler' and (p.kind, p.tenant) > (b.kind, b.tenant)
          order by p.kind, p.tenant
          limit 1) n)
    select s.id
      from parked b
     cross join lateral (
       select p.id
         from holdfast.steps p
        where p.queue = unpark_served.queue and p.parked_for = 'handler' and p.kind = b.kind and p.tenant = b.tenant
        limit 5000
          for update skip locked) s
     where holdfast.matches_any(unpark_served.kinds, b.kind)
       and holdfast.matches_any(unpark_served.tenants, b.tenant)
       and holdfast.matches(unpark_served.machine, b.machine)
     limit 5000);
begin
  if served <> '{}' then
    update holdfast.steps s
       set due_at = s.parked_due_at, parked_due_at = null, parked_for = null
     where s.id = any (served);
  end if;
end
$$;


--
-- Name: unpark_steps(bigint[], text, text); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.unpark_steps(ids bigint[], reason text DEFAULT NULL::text, actor text DEFAULT NULL::text) RETURNS SETOF bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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


--
-- Name: upkeep(integer, text, jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.upkeep(batch integer DEFAULT 1000, worker text DEFAULT NULL::text, about jsonb DEFAULT NULL::jsonb) RETURNS TABLE(rescued bigint, moved bigint, partitions integer)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  return query
  select u.rescued, u.moved, u.partitions
    from holdfast.measured_upkeep(upkeep.worker, upkeep.about, upkeep.batch) u;
end
$$;


--
-- Name: uuid7(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.uuid7() RETURNS uuid
    LANGUAGE sql
    BEGIN ATOMIC
 SELECT (encode(set_byte(("substring"(int8send(((EXTRACT(epoch FROM holdfast.clock()) * (1000)::numeric))::bigint), 3) || tail.bytes), 6, ((get_byte(tail.bytes, 0) & 15) | 112)), 'hex'::text))::uuid AS encode
    FROM ( SELECT "substring"(uuid_send(gen_random_uuid()), 7) AS bytes) tail;
END;


--
-- Name: violations(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.violations() RETURNS TABLE(invariant text, subject text, detail text)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  select holdfast.check_all_tenants('violations');  -- it names rows of all tenants
  with known as (
    select s.*, t.phase, t.outcome
      from holdfast.steps s left join holdfast.machine_states t on t.machine = s.machine and t.state = s.state),
  moved as (
    select j.*, lag(j.to_state) over story as came_from, lead(j.id) over story is null as is_last
      from holdfast.journal j
    window story as (partition by j.step_id, case when j.step_id is null then j.run_id end order by j.id))
  select 'state_is_known', 'step ' || s.id, format('%s has no state %s', s.machine, s.state)
    from known s where s.phase is null
  union all
  select 'held_has_a_lease', 'step ' || s.id, format('%s with lease %s', s.state, s.lease_id)
    from known s where (s.phase = 'held') <> (s.lease_id is not null)
  union all
  select 'over_is_finished', 'step ' || s.id, format('%s, finished_at %s', s.state, s.finished_at)
    from known s where (s.phase = 'over' and s.finished_at is null)
      or (s.phase in ('open', 'shut') and s.finished_at is not null)
  union all
  select 'open_is_reachable', 'step ' || s.id, format('%s, but neither due, parked, held nor waiting', s.state)
    from known s
   where s.finished_at is null and s.waits = 0 and s.due_at is null and s.lease_id is null and s.parked_due_at is null
     and s.phase in ('open', 'open_or_over')
  union all
  select 'machine_has_the_move', 'step ' || s.id, format('parked: %s lacks a move from %s', s.machine, s.state)
    from known s where s.parked_for = 'move'
  union all
  select 'priority_is_looked_at', 'step ' || s.id,
    format('priority %s, but claims from %s look up to %s', s.priority, s.queue, q.top_priority)
    from known s join holdfast.queues q on q.queue = s.queue
   where s.finished_at is null and s.priority > q.top_priority
  union all
  select 'waits_for_parents', 'step ' || s.id, format('waits is %s, parents not done %s', s.waits, p.open)
    from known s,
         lateral (select count(*) filter (where q.finished_at is null or not holdfast.is_success(q.outcome)) as open
                    from holdfast.edges e join known q on q.id = e.step_id where e.next_id = s.id) p
   where s.run_id is not null and s.waits <> p.open
  union all
  select 'lease_is_held_once', 'lease ' || s.lease_id, format('%s steps hold it', count(*))
    from known s where s.lease_id is not null group by s.lease_id having count(*) > 1
  union all
  select 'lease_was_rescued', 'step ' || s.id, format('its lease ended %s', s.lease_until)
    from known s where s.lease_until < holdfast.clock() - interval '10 minutes'
  union all
  select 'step_is_in_its_run', 'step ' || s.id, format('run %s does not have it', s.run_id)
    from known s
   where s.run_id is not null
     and not exists (select from holdfast.run_steps n where n.run_id = s.run_id and n.step_id = s.id)
  union all
  select 'run_counts_its_steps', 'run ' || r.id,
         format('total %s live %s succeeded %s failed %s cancelled %s, counted %s', r.total, r.live, r.succeeded,
                r.failed, r.cancelled, c)
    from holdfast.runs r, lateral holdfast.count_steps(r.id) c
   where (r.total, r.live, r.succeeded, r.failed, r.cancelled) is distinct
     from (c.total, c.live, c.succeeded, c.failed, c.cancelled)
  union all
  select 'run_without_live_steps_is_over', 'run ' || r.id, format('%s with %s steps', r.state, r.total)
    from holdfast.runs r where r.live = 0 and r.total > 0 and r.finished_at is null and r.moving is null
     and not exists (select from holdfast.machine_states t where t.machine = r.machine
                     and t.state = r.state and t.phase = 'shut')
  union all
  -- A plan is staged in the transaction that starts the run, or soon after it.
  select 'run_has_steps', 'run ' || r.id, format('%s without steps since %s; cancel it', r.state, r.created_at)
    from holdfast.runs r where r.total = 0 and r.finished_at is null
      and r.created_at < holdfast.clock() - interval '1 hour'
     and not exists (select from holdfast.machine_states t where t.machine = r.machine
                     and t.state = r.state and t.phase = 'shut')
  union all
  select 'run_that_is_over_has_no_live_steps', 'run ' || r.id, format('%s with %s live steps', r.state, r.live)
    from holdfast.runs r where r.live > 0 and r.finished_at is not null and r.moving is null
  union all
  select 'journal_is_a_chain', 'journal ' || j.id,
    format('%s came from %s, the last move led to %s', j.event, j.from_state, j.came_from)
    from moved j where j.came_from <> j.from_state
  union all
  select 'journal_ends_where_the_row_is', 'step ' || s.id, format('it is %s, the journal says %s', s.state, j.to_state)
    from moved j join holdfast.steps s on s.id = j.step_id
   where j.is_last and (j.to_state, coalesce(j.attempt, 0)) is distinct from (s.state, s.attempt)
  union all
  select 'journal_ends_where_the_row_is', 'run ' || r.id, format('it is %s, the journal says %s', r.state, j.to_state)
    from moved j join holdfast.runs r on r.id = j.run_id and j.step_id is null
   where j.is_last and j.to_state <> r.state
  union all
  select 'moved_is_journaled', 'step ' || s.id, format('%s by %s and nothing in the journal', s.state, s.last_event)
    from known s
   where s.last_event is not null and not exists (select from holdfast.journal j where j.step_id = s.id)
     and s.created_at > (select min(j.at) from holdfast.journal j)
  union all
  select l.invariant, l.subject, l.detail from holdfast.limit_violations() l
  union all
  select c.invariant, c.subject, c.detail from holdfast.schedule_violations() c
  union all
  select r.invariant, r.subject, r.detail from holdfast.retention_violations() r
  union all
  select g.invariant, g.subject, g.detail from holdfast.guard_violations() g
  union all
  select f.invariant, f.subject, f.detail from holdfast.face_violations() f
$$;


--
-- Name: wake(text[]); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.wake(queues text[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
begin
  perform pg_notify('holdfast', s.queue)  -- a transaction sends equal notifications once
     from holdfast.workers s
    where s.is_asleep and s.queue = any (wake.queues) and holdfast.is_live_worker(s.seen_at, clock);
end
$$;


--
-- Name: wake_for_schedules(); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.wake_for_schedules() RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
begin
  if exists (select from holdfast.workers w where w.is_asleep and holdfast.is_live_worker(w.seen_at, clock)) then
    perform pg_notify('holdfast', '');
  end if;
end
$$;


--
-- Name: weight_for(numeric, text, numeric, jsonb); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.weight_for(given numeric, template text, call_weight numeric, input jsonb) RETURNS numeric
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
  filled constant text := case when weight_for.given is null
                               then holdfast.fill_template(weight_for.template, weight_for.input) end;
  weight numeric := weight_for.given;
begin
  if filled is not null then
    if filled !~ '^\s*[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,2})?\s*$' then
      perform holdfast.refuse('RN005', format('weight must be a number, got %s', left(filled, 100)),
                              'name a field of the input that is a number', 'weight');
    end if;
    weight := filled::numeric;
  end if;
  perform holdfast.check_weight(weight, weight_for.call_weight);
  return nullif(weight, 1);
end
$_$;


--
-- Name: with_ticks(holdfast.schedules, timestamp with time zone[], boolean); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.with_ticks(schedule holdfast.schedules, ticks timestamp with time zone[], is_all boolean) RETURNS holdfast.schedules
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  schedule.is_planned := with_ticks.is_all or schedule.is_planned
    or coalesce((select max(t.at) > schedule.ends_at from unnest(with_ticks.ticks) t (at)), false);
  schedule.upcoming := schedule.upcoming || array(
    select t.at from unnest(with_ticks.ticks) t (at)
     where coalesce(t.at <= schedule.ends_at, true)  -- guard: end
     order by t.at);
  return schedule;
end
$$;


--
-- Name: worker_standing(timestamp with time zone, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.worker_standing(seen_at timestamp with time zone, clock timestamp with time zone) RETURNS text
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT
         CASE
             WHEN (seen_at > (clock - '00:00:45'::interval)) THEN 'alive'::text
             WHEN holdfast.is_live_worker(seen_at, clock) THEN 'late'::text
             ELSE 'gone'::text
         END AS "case";
END;


--
-- Name: write_note(holdfast.steps, text, text, jsonb, text, timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.write_note(step holdfast.steps, level text, message text, payload jsonb, key text, clock timestamp with time zone) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  written bigint := nextval('holdfast.stream_ids');
begin
  if write_note.key is not null then
    insert into holdfast.note_keys values (step.id, write_note.key, written, write_note.clock + interval '30 days')
    on conflict do nothing;
    if not found then
      return (select k.note_id from holdfast.note_keys k where k.step_id = step.id and k.key = write_note.key);
    end if;
  end if;
  insert into holdfast.notes (id, at, tenant, step_id, run_id, attempt, lease_id, level, message, payload)
  values (written, write_note.clock, step.tenant, step.id, step.run_id, step.attempt, step.lease_id, write_note.level,
          coalesce(write_note.message, ''), coalesce(write_note.payload, '{}'));
  return written;
end
$$;


--
-- Name: write_notes(holdfast.steps, text[], text[], jsonb[], text[], timestamp with time zone); Type: FUNCTION; Schema: holdfast; Owner: -
--

CREATE FUNCTION holdfast.write_notes(step holdfast.steps, levels text[], messages text[], payloads jsonb[], keys text[], clock timestamp with time zone) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  written int;
begin
  with numbered as materialized (
    select g.*, nextval('holdfast.stream_ids') as id
      from unnest(write_notes.levels, write_notes.messages, write_notes.payloads,
                  write_notes.keys) g (level, message, payload, key)),
  kept as (
    insert into holdfast.note_keys
    select step.id, n.key, n.id, write_notes.clock + interval '30 days' from numbered n
    on conflict do nothing
    returning note_id)
  insert into holdfast.notes (id, at, tenant, step_id, run_id, attempt, lease_id, level, message, payload)
  select n.id, write_notes.clock, step.tenant, step.id, step.run_id, step.attempt, step.lease_id, n.level, n.message,
         n.payload
    from numbered n
   where n.id in (select k.note_id from kept k)
   order by n.id;
  get diagnostics written = row_count;
  return written;
end
$$;


--
-- Name: add_artifact(text, text, text, text, bigint, jsonb, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.add_artifact(p_run_id text, p_type text, p_url text, p_digest text DEFAULT NULL::text, p_size_bytes bigint DEFAULT NULL::bigint, p_metadata jsonb DEFAULT '{}'::jsonb, p_worker_id text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column  -- `on conflict` cannot qualify its columns
declare
  clock constant timestamptz := holdfast.clock();
  given constant jsonb := ops.checked_metadata(p_metadata);
  held record;
  step holdfast.steps;
  facts ops.run_facts;
  id text;
begin
  perform holdfast.check_name('type', coalesce(p_type, ''), 100);
  perform holdfast.check_name('url', coalesce(p_url, ''), 4000);
  perform holdfast.check_name('digest', p_digest);
  if p_size_bytes < 0 then
    perform holdfast.refuse('RN005', format('size must not be negative, got %s', p_size_bytes), 'give it in bytes',
                            'p_size_bytes');
  end if;
  select * into held from ops.lock_run(p_run_id);
  step := held.step;
  facts := held.facts;
  perform ops.check_worker(facts, p_worker_id);
  id := (select a.artifact_id from ops.run_artifacts a
          where a.step_id = step.id and a.type = p_type and md5(a.url) = md5(p_url));
  if id is not null then
    return id;
  end if;
  if step.lease_id is null then
    perform holdfast.refuse('RN010', format('run %s is %s and takes no artifact', facts.run_id, step.state),
                            'add artifacts between the claim of a run and its end', 'p_run_id');
  end if;
  perform holdfast.report_on(step, coalesce(facts.lease, interval '5 minutes'), true, clock);
  insert into ops.run_artifacts (artifact_id, step_id, tenant, type, url, digest, size_bytes, metadata, created_at)
  values ('art-' || gen_random_uuid(), step.id, step.tenant, p_type, p_url, p_digest, p_size_bytes, given, clock)
  returning artifact_id into id;
  perform holdfast.write_note(step, 'info', 'Artifact added: ' || p_type, jsonb_strip_nulls(jsonb_build_object(
    'artifact_id', id, 'type', p_type, 'url', p_url, 'digest', p_digest, 'size_bytes', p_size_bytes)), null, clock);
  return id;
end
$$;


--
-- Name: run_facts; Type: TABLE; Schema: ops; Owner: -
--

CREATE TABLE ops.run_facts (
    run_id text NOT NULL,
    step_id bigint,
    status text DEFAULT 'queued'::text NOT NULL,
    queued_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    running_at timestamp with time zone,
    finished_at timestamp with time zone,
    updated_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    lease interval,
    tenant text NOT NULL,
    kind text NOT NULL,
    project_id text,
    env_id text,
    env text,
    git_sha text,
    git_ref text,
    claimed_by text,
    queued_by text,
    retry_of text,
    rollback_of text,
    idempotency_key text,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT claimed_has_a_worker CHECK ((((claimed_by IS NULL) = (started_at IS NULL)) AND ((claimed_by IS NOT NULL) OR (status = ANY (ARRAY['queued'::text, 'cancelled'::text]))))),
    CONSTRAINT finished_is_over CHECK (((finished_at IS NULL) = (status = ANY (ARRAY['queued'::text, 'claimed'::text, 'running'::text])))),
    CONSTRAINT known_status CHECK ((status = ANY (ARRAY['queued'::text, 'claimed'::text, 'running'::text, 'success'::text, 'failed'::text, 'cancelled'::text]))),
    CONSTRAINT queued_is_unclaimed CHECK (((status <> 'queued'::text) OR (num_nonnulls(claimed_by, started_at, finished_at) = 0))),
    CONSTRAINT times_in_order CHECK (((queued_at <= started_at) AND (started_at <= running_at) AND (COALESCE(started_at, queued_at) <= finished_at)))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02');

ALTER TABLE ONLY ops.run_facts FORCE ROW LEVEL SECURITY;


--
-- Name: again(ops.run_facts, ops.run_facts, text, text, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.again(old ops.run_facts, source ops.run_facts, link text, reason text, actor text) RETURNS ops.run_facts
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  step holdfast.steps;
  facts ops.run_facts;
begin
  select f.* into facts from ops.run_facts f
   where case again.link when 'retry_of' then f.retry_of = old.run_id else f.rollback_of = old.run_id end
     and f.finished_at is null
   limit 1;
  if found then
    return facts;
  end if;
  select s.* into strict step from holdfast.steps s where s.id = source.step_id;
  return ops.begin_run(
    source.project_id, source.env, source.git_sha, source.git_ref,
    case when jsonb_typeof(step.input -> 'metadata') = 'object' then step.input -> 'metadata' else '{}' end
      || jsonb_strip_nulls(jsonb_build_object(again.link, old.run_id, 'why', again.reason)),
    null, jsonb_build_object('kind', source.kind, 'priority', step.priority, again.link, old.run_id), again.actor,
    source.tenant);
end
$$;


--
-- Name: append_event(text, text, text, jsonb, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.append_event(p_run_id text, p_level text, p_message text, p_payload jsonb DEFAULT '{}'::jsonb, p_event_key text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  held record;
  step holdfast.steps;
  facts ops.run_facts;
  event bigint;
begin
  perform holdfast.check_note(p_level, p_message, p_payload, p_event_key);
  select * into held from ops.lock_run(p_run_id);
  step := held.step;
  facts := held.facts;
  event := ops.repeated_event(step.id, p_level, coalesce(p_message, ''), p_event_key, clock);
  if step.finished_at is not null then
    if event is null then
      perform holdfast.refuse('RN010', format('run %s is %s and takes no new event', facts.run_id, step.state),
                              'stop working on it', 'p_run_id');
    end if;
    return ops.event_id(event);
  end if;
  if step.lease_id is not null then
    perform holdfast.report_on(step, coalesce(facts.lease, interval '5 minutes'), true, clock);
  end if;
  return ops.event_id(coalesce(
    event, holdfast.write_note(step, p_level, p_message, p_payload, p_event_key, clock)));
end
$$;


--
-- Name: append_output(bigint, bigint, text[], text[], jsonb[], text[]); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.append_output(step_id bigint, lease_id bigint, levels text[], messages text[], payloads jsonb[], keys text[]) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  step constant holdfast.steps := ops.held_run(append_output.step_id, append_output.lease_id);
begin
  perform holdfast.check_note(g.level, g.message, g.payload, coalesce(g.key, ''))
     from unnest(append_output.levels, append_output.messages, append_output.payloads,
                 append_output.keys) g (level, message, payload, key);
  return holdfast.write_notes(step, append_output.levels, append_output.messages, append_output.payloads,
                              append_output.keys, holdfast.clock());
end
$$;


--
-- Name: begin_run(text, text, text, text, jsonb, text, jsonb, text, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.begin_run(project_id text, env text, git_sha text, git_ref text, metadata jsonb, key text, options jsonb, actor text, tenant text) RETURNS ops.run_facts
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column  -- `on conflict` cannot qualify its columns
declare
  clock constant timestamptz := holdfast.clock();
  run_kind constant text := coalesce(options ->> 'kind', begin_run.metadata ->> 'kind', 'deploy');
  own_id constant text := 'run-' || gen_random_uuid();
  place ops.known_environments;
  facts ops.run_facts;
begin
  if (holdfast.is_name(begin_run.project_id) and holdfast.is_name(begin_run.env, 100)
      and holdfast.is_name(run_kind, 100) and coalesce(holdfast.is_name(begin_run.git_sha), true)
      and coalesce(holdfast.is_name(begin_run.git_ref, 400), true)
      and coalesce(holdfast.is_name(begin_run.key, 400), true)
      and holdfast.is_name(begin_run.actor)) is not true then  -- a call costs more
    perform ops.refuse_request(begin_run.project_id, begin_run.env, run_kind, begin_run.git_sha, begin_run.git_ref,
                               begin_run.key, begin_run.actor);
  end if;
  if begin_run.key is not null then
    perform holdfast.check_tenant(begin_run.tenant);  -- start_step does, but here a run may be given away before
    select f.* into facts from ops.run_facts f
     where f.tenant = begin_run.tenant and f.idempotency_key = begin_run.key;
    if found then
      return facts;
    end if;
  end if;
  select e.* into place from ops.known_environments e
   where e.tenant = begin_run.tenant and e.project_id = begin_run.project_id and e.name = begin_run.env;
  if not found then
    place := ops.new_environment(begin_run.tenant, begin_run.project_id, begin_run.env, begin_run.actor);
  end if;
  if begin_run.key is not null then
    insert into ops.run_facts (run_id, tenant, idempotency_key, kind, queued_at, updated_at)
    values (own_id, begin_run.tenant, begin_run.key, run_kind, clock, clock)
    on conflict (tenant, idempotency_key) where idempotency_key is not null do nothing;  -- guard: key
    if not found then
      select f.* into strict facts from ops.run_facts f
       where f.tenant = begin_run.tenant and f.idempotency_key = begin_run.key;
      return facts;
    end if;
  end if;
  facts.step_id := holdfast.start_step(
    'ops.run', 'ops:' || run_kind,
    jsonb_strip_nulls(jsonb_build_object(
      'run_id', own_id, 'project_id', begin_run.project_id, 'env_id', place.env_id, 'env', begin_run.env,
      'git_sha', begin_run.git_sha, 'git_ref', begin_run.git_ref, 'queued_by', begin_run.actor,
      'retry_of', options -> 'retry_of', 'rollback_of', options -> 'rollback_of',
      'expires_at', clock + coalesce((options ->> 'ttl')::interval, place.queue_ttl)))
      || jsonb_build_object('metadata', begin_run.metadata),
    queue => coalesce((select k.queue from holdfast.kinds_of(begin_run.tenant) k where k.kind = 'ops:' || run_kind),
                      'ops'),
    due_at => (options ->> 'due_at')::timestamptz, priority => coalesce((options ->> 'priority')::int, 0),
    tenant => begin_run.tenant, parked_for => case when place.needs_approval then 'approval' end,
    actor => begin_run.actor,
    limits => case when place.concurrency is not null then array['env:' || place.env_id] end);
  if place.needs_approval then
    insert into ops.run_approvals (step_id, tenant, requested_by, requested_at, expires_at)
    values (facts.step_id, begin_run.tenant, begin_run.actor, clock, clock + interval '24 hours');
  end if;
  select f.* into strict facts from ops.run_facts f where f.run_id = own_id;
  return facts;
end
$$;


--
-- Name: cancel_if_stale(text, jsonb); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.cancel_if_stale(p_run_id text, p_metadata jsonb) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  given constant jsonb := ops.checked_metadata(p_metadata);
  held record;
  step holdfast.steps;
begin
  select * into held from ops.lock_run(p_run_id);
  step := held.step;
  if step.state <> 'claimed' or step.claimed_at >= clock - interval '5 minutes' then  -- guard: stale
    return false;
  end if;
  perform holdfast.set_actor('system', session_user::text, left(given ->> 'reason', 1000));
  perform from holdfast.move_steps(array[(
    step.id, step.lease_id, 'expired', null, null, jsonb_build_object(
      'type', 'LeaseExpired', 'message', ops.stale_reason(step.state, step.claimed_at, clock)), null
    )::holdfast.step_move], clock);
  perform holdfast.set_actor();
  update ops.run_facts f set metadata = f.metadata || given where f.step_id = step.id;
  return true;
end
$$;


--
-- Name: cancel_open(text[], text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.cancel_open(ids text[], reason text) RETURNS void
    LANGUAGE sql
    BEGIN ATOMIC
 SELECT holdfast.cancel_open(ARRAY( SELECT (f.step_id)::text AS step_id
            FROM ops.run_facts f
           WHERE ((f.run_id = ANY (cancel_open.ids)) AND (f.finished_at IS NULL)))) AS cancel_open;
END;


--
-- Name: cancel_run(text, text, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.cancel_run(p_run_id text, p_reason text DEFAULT NULL::text, p_actor text DEFAULT NULL::text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
  held record;
  step holdfast.steps;
  facts ops.run_facts;
begin
  perform holdfast.check_reason(p_reason);
  perform holdfast.check_name('actor', p_actor);
  select * into held from ops.lock_run(p_run_id);
  step := held.step;
  facts := held.facts;
  if step.state = 'cancelled' then
    return true;
  end if;
  if step.finished_at is not null then  -- guard: end
    perform holdfast.refuse('RN010', format('run %s is %s and cannot be cancelled', facts.run_id, step.state),
                            'its end is final; ops.rollback_run queues a run that goes back', 'p_run_id');
  end if;
  perform holdfast.set_actor('user', coalesce(p_actor, session_user), p_reason);
  perform from holdfast.move_steps(array[
    (step.id, step.lease_id, 'cancelled', null, null, null, null)::holdfast.step_move]);
  perform holdfast.set_actor();
  return true;
end
$$;


--
-- Name: cancel_stale_runs(); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.cancel_stale_runs() RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  return (select jsonb_build_object('cancelled', count(*)) from ops.sweep_runs());
end
$$;


--
-- Name: check_worker(ops.run_facts, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.check_worker(facts ops.run_facts, worker text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if check_worker.worker is not null
     and facts.claimed_by is distinct from check_worker.worker  -- guard: worker
  then
    perform holdfast.refuse(
      'RN002', format('run %s belongs to %s, not to %s', facts.run_id,
                      coalesce('worker ' || facts.claimed_by, 'no worker'), check_worker.worker),
      'stop working on it: only the worker that claimed a run reports on it', 'p_worker_id');
  end if;
end
$$;


--
-- Name: checked_metadata(jsonb); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.checked_metadata(metadata jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if jsonb_typeof(checked_metadata.metadata) <> 'object' then
    perform holdfast.refuse('RN005', format('metadata must be a JSON object, got %s',
                                            jsonb_typeof(checked_metadata.metadata)),
                            'pass fields by name, such as {"exit_code": 0}', 'p_metadata');
  end if;
  perform holdfast.check_size('metadata', checked_metadata.metadata);
  return coalesce(checked_metadata.metadata, '{}');
end
$$;


--
-- Name: claim_next_run(text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.claim_next_run(p_worker_id text) RETURNS TABLE(run_id text, project_id text, env_id text, git_sha text, git_ref text, metadata jsonb)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  claimed bigint;
begin
  if exists (select from ops.run_facts f where f.status || '' = 'queued' and f.expires_at <= clock) then
    perform from ops.expire_runs(clock, holdfast.allowed_tenants());
  end if;
  claimed := (select c.step_id from holdfast.claim_steps(p_worker_id, 'ops', batch => 1, machine => 'ops.run') c);
  return query
  select f.run_id, f.project_id, f.env_id, f.git_sha, f.git_ref, f.metadata
    from ops.run_facts f
   where f.step_id = claimed;
end
$$;


--
-- Name: decide_approval(text, text, text, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.decide_approval(p_run_id text, p_decision text, p_reason text, p_actor text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  name constant text := coalesce(p_actor, session_user);
  held record;
  step holdfast.steps;
  facts ops.run_facts;
  approval ops.run_approvals;
begin
  if p_decision is null or p_decision not in ('approved', 'rejected') then
    perform holdfast.refuse('RN005', format('decision must be approved or rejected, got %s', p_decision),
                            'name one of them', 'p_decision');
  end if;
  if coalesce(trim(p_reason), '') = '' then
    perform holdfast.refuse('RN005', 'a decision needs a reason', 'say in a few words why', 'p_reason');
  end if;
  perform holdfast.check_reason(p_reason);
  perform holdfast.check_name('actor', p_actor);
  select * into held from ops.lock_run(p_run_id);
  step := held.step;
  facts := held.facts;
  select a.* into approval from ops.run_approvals a where a.step_id = step.id;
  if approval.step_id is null or approval.decision is not null then  -- guard: once
    perform holdfast.refuse(
      'RN010', format('run %s %s', facts.run_id, coalesce(
        format('was %s by %s', approval.decision, approval.decided_by), 'waits for no approval')),
      'a run is decided on once; queue or retry it for another decision', 'p_run_id');
  end if;
  if approval.expires_at <= clock then  -- guard: late
    perform holdfast.refuse('RN010', format('the approval of run %s expired at %s', facts.run_id, approval.expires_at),
                            'queue it again with ops.retry_run once it is cancelled', 'p_run_id');
  end if;
  if approval.requested_by = name then  -- guard: own
    perform holdfast.refuse('RN010', format('%s queued run %s and cannot decide on it', name, facts.run_id),
                            'somebody else has to approve or reject it', 'p_actor');
  end if;
  update ops.run_approvals a
     set decision = p_decision, decided_by = name, decided_at = clock, reason = p_reason,
         login = case when name <> session_user then session_user end
   where a.step_id = step.id;
  if p_decision = 'approved' then
    perform from holdfast.unpark_steps(array[step.id], p_reason, name);
  else
    perform holdfast.set_actor('user', name, 'Approval rejected: ' || p_reason);
    perform from holdfast.move_steps(array[
      (step.id, null, 'cancelled', null, null, null, null)::holdfast.step_move]);
    perform holdfast.set_actor();
  end if;
  return p_decision;
end
$$;


--
-- Name: define_environment(text, text, text, text, boolean, text, integer, interval, text, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.define_environment(p_project_id text, p_env text, p_type text DEFAULT NULL::text, p_branch_pattern text DEFAULT NULL::text, p_needs_approval boolean DEFAULT false, p_on_push text DEFAULT 'queue'::text, p_concurrency integer DEFAULT NULL::integer, p_queue_ttl interval DEFAULT NULL::interval, p_kind text DEFAULT 'deploy'::text, p_tenant text DEFAULT 'default'::text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  actor constant text := session_user;
  place ops.known_environments;
begin
  perform holdfast.check_tenant(p_tenant);
  perform ops.refuse_request(p_project_id, p_env, coalesce(p_kind, ''), null, null, null, null);
  perform holdfast.check_name('branch_pattern', nullif(p_branch_pattern, '*'), 400);  -- * is every branch
  if p_type not in ('dev', 'staging', 'prod') then
    perform holdfast.refuse('RN005', format('type must be dev, staging or prod, got %s', p_type), 'leave it out',
                            'p_type');
  end if;
  if p_on_push is null or p_on_push not in ('queue', 'cancel_queued', 'cancel_all') then
    perform holdfast.refuse('RN005', format('on_push must be queue, cancel_queued or cancel_all, got %s', p_on_push),
                            'queue changes no older run', 'p_on_push');
  end if;
  if p_concurrency < 1 then
    perform holdfast.refuse('RN005', format('concurrency must be 1 or more, got %s', p_concurrency),
                            'leave it out for any number', 'p_concurrency');
  end if;
  if p_queue_ttl <= '0' then
    perform holdfast.refuse('RN005', format('queue_ttl must be longer than 0, got %s', p_queue_ttl),
                            'leave it out for no limit', 'p_queue_ttl');
  end if;
  place := ops.register_environment(p_tenant, p_project_id, p_env, actor);
  update ops.known_environments e
     set type = coalesce(p_type, e.type), branch_pattern = p_branch_pattern,
         needs_approval = coalesce(p_needs_approval, false), on_push = p_on_push, concurrency = p_concurrency,
         queue_ttl = p_queue_ttl, kind = p_kind
   where e.env_id = place.env_id;
  if p_concurrency is not null then
    perform holdfast.define_limit('env:' || place.env_id, p_concurrency, tenant => p_tenant);
  elsif place.concurrency is not null then
    perform holdfast.forget_limit('env:' || place.env_id, 'its environment has no concurrency any more', p_tenant);
  end if;
  return place.env_id;
end
$$;


--
-- Name: define_project(text, text, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.define_project(p_project_id text, p_repository text DEFAULT NULL::text, p_tenant text DEFAULT 'default'::text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column  -- `on conflict` cannot qualify its columns
declare
  other text;
begin
  perform holdfast.check_tenant(p_tenant);
  perform holdfast.check_name('project_id', coalesce(p_project_id, ''));
  perform holdfast.check_name('repository', p_repository);
  other := (select p.project_id from ops.known_projects p
             where p.tenant = p_tenant and lower(p.repository) = lower(p_repository) and p.project_id <> p_project_id);
  if other is not null then
    perform holdfast.refuse('RN003', format('repository %s belongs to project %s', p_repository, other),
                            'one repository selects one project', 'p_repository');
  end if;
  insert into ops.known_projects (tenant, project_id, repository, created_at, created_by)
  values (p_tenant, p_project_id, p_repository, holdfast.clock(), session_user)
  on conflict (tenant, project_id) do update set repository = excluded.repository;
end
$$;


--
-- Name: end_run(holdfast.steps, text, jsonb, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.end_run(step holdfast.steps, status text, given jsonb, worker text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  canceller constant text := given ->> 'cancelled_by';
begin
  if end_run.status = 'cancelled' and end_run.worker is null then
    perform holdfast.set_actor(
      'api', case when holdfast.is_name(canceller) then canceller else session_user end,
      left(given ->> 'reason', 1000));
  else
    perform holdfast.set_actor('worker', coalesce(step.lease_owner, end_run.worker), left(given ->> 'reason', 1000));
  end if;
  perform from holdfast.move_steps(array[(
    step.id, step.lease_id,
    case end_run.status when 'success' then 'succeeded' else end_run.status end, null,
    case end_run.status when 'success' then given end,
    case end_run.status when 'failed' then jsonb_build_object(
      'type', 'RunFailed', 'message', coalesce(given ->> 'error', 'the worker reported a failure')) end,
    null)::holdfast.step_move]);
  perform holdfast.set_actor();
  if end_run.status <> 'success' and given <> '{}' then  -- what the caller says overrides what the move says
    update ops.run_facts f set metadata = f.metadata || given where f.step_id = step.id;
  end if;
end
$$;


--
-- Name: event_id(bigint); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.event_id(number bigint) RETURNS text
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT ('evt-'::text || lpad((number)::text, 19, '0'::text));
END;


--
-- Name: expire_runs(timestamp with time zone, text[]); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.expire_runs(clock timestamp with time zone, tenants text[]) RETURNS TABLE(run_id text, reason text)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  why text;
  ids bigint[];
begin
  foreach why in array array['Approval expired', 'Run expired in the queue'] loop
    ids := array(
      select s.id from holdfast.steps s
       where s.id = any (case why
               when 'Approval expired' then array(
                 select a.step_id from ops.run_approvals a
                  where a.decision is null and a.expires_at <= expire_runs.clock
                    and holdfast.matches_any(expire_runs.tenants, a.tenant)
                  order by a.expires_at limit 1000)
               else array(
                 select f.step_id from ops.run_facts f
                  where f.status || '' = 'queued' and f.expires_at <= expire_runs.clock
                    and holdfast.matches_any(expire_runs.tenants, f.tenant)
                  order by f.expires_at limit 1000) end)
         and s.state = 'queued'
       order by s.id
         for update skip locked);
    continue when ids = '{}';
    if why = 'Approval expired' then
      update ops.run_approvals a
         set decision = 'expired', decided_by = 'system', decided_at = expire_runs.clock, reason = why
       where a.step_id = any (ids) and a.decision is null;
    end if;
    perform holdfast.set_actor('system', 'system', why);
    perform from holdfast.move_steps(array(
      select (u.id, null, 'cancelled', null, null, null, null)::holdfast.step_move from unnest(ids) u (id)));
    perform holdfast.set_actor();
    return query select f.run_id, why from ops.run_facts f where f.step_id = any (ids) order by f.step_id;
  end loop;
end
$$;


--
-- Name: finish_run(text, text, jsonb, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.finish_run(p_run_id text, p_status text, p_metadata jsonb DEFAULT '{}'::jsonb, p_worker_id text DEFAULT NULL::text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
  given constant jsonb := ops.checked_metadata(p_metadata);
  held record;
  step holdfast.steps;
  facts ops.run_facts;
begin
  if p_status is null or p_status not in ('success', 'failed', 'cancelled') then
    perform holdfast.refuse('RN005', format('status must be success, failed or cancelled, got %s', p_status),
                            'a run ends in one of these', 'p_status');
  end if;
  select * into held from ops.lock_run(p_run_id);
  step := held.step;
  facts := held.facts;
  perform ops.check_worker(facts, p_worker_id);
  if step.finished_at is not null and step.state = p_status then
    return true;
  end if;
  if step.finished_at is not null  -- guard: end
     or (step.state = 'queued' and p_status <> 'cancelled') then
    perform holdfast.refuse(
      'RN010', format('run %s is %s and cannot become %s', facts.run_id, step.state, p_status),
      case when step.finished_at is null then 'claim it first with ops.claim_next_run'
           else 'its end is final; ops.retry_run queues a new run' end, 'p_run_id');
  end if;
  perform ops.end_run(step, p_status, given, p_worker_id);
  return true;
end
$$;


--
-- Name: heartbeat(text, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.heartbeat(p_run_id text, p_worker_id text DEFAULT NULL::text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
  held record;
  step holdfast.steps;
  facts ops.run_facts;
begin
  select * into held from ops.lock_run(p_run_id);
  step := held.step;
  facts := held.facts;
  perform ops.check_worker(facts, p_worker_id);
  if step.finished_at is null and step.lease_id is null then
    perform holdfast.refuse('RN010', format('run %s is %s: nobody has claimed it', facts.run_id, step.state),
                            'claim it first with ops.claim_next_run', 'p_run_id');
  end if;
  if step.lease_id is not null then
    perform holdfast.report_on(step, coalesce(facts.lease, interval '5 minutes'), false, holdfast.clock());
  end if;
  return step.lease_id is not null;
end
$$;


--
-- Name: held_run(bigint, bigint); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.held_run(step_id bigint, lease_id bigint) RETURNS holdfast.steps
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  step holdfast.steps;
begin
  select s.* into step from holdfast.steps s
   where s.id = held_run.step_id
     and s.lease_id = held_run.lease_id  -- guard: lease
     for update;
  if step.id is null
     or not holdfast.matches_any(allowed, step.tenant)  -- guard: tenant
  then
    perform holdfast.refuse('RN002', format('step %s is not held under lease %s', held_run.step_id, held_run.lease_id),
                            'stop working on it: another worker has it, or it is over');
  end if;
  return step;
end
$$;


--
-- Name: is_any_open(text[]); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.is_any_open(ids text[]) RETURNS boolean
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT ((EXISTS ( SELECT
            FROM ops.run_facts f
           WHERE ((f.run_id = ANY (is_any_open.ids)) AND (f.finished_at IS NULL)))) OR (EXISTS ( SELECT
            FROM ops.run_facts f
           WHERE ((f.retry_of = ANY (is_any_open.ids)) AND (f.finished_at IS NULL)))));
END;


--
-- Name: lock_run(text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.lock_run(run_id text, OUT step holdfast.steps, OUT facts ops.run_facts) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  found_id bigint := (select f.step_id from ops.run_facts f where f.run_id = lock_run.run_id);
begin
  if found_id is null and lock_run.run_id ~ '^[0-9]{1,18}$' then
    found_id := (select f.step_id from ops.run_facts f where f.step_id = lock_run.run_id::bigint);
  end if;
  select s.* into step from holdfast.steps s
   where s.id = found_id and holdfast.matches_any(allowed, s.tenant)  -- guard: tenant
     for update;  -- guard: lock
  if step.id is null then
    perform holdfast.refuse('RN004', format('there is no run %s', lock_run.run_id),
                            'ops.runs lists them; queue_run returns the id of a new one', 'p_run_id');
  end if;
  select f.* into facts from ops.run_facts f where f.step_id = step.id;  -- after the lock: as it is now
end
$_$;


--
-- Name: matches_branch(text, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.matches_branch(pattern text, ref text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT COALESCE((
         CASE
             WHEN (ref ~~ 'refs/%'::text) THEN ref
             ELSE ('refs/heads/'::text || ref)
         END ~ (('^'::text || replace(replace(replace(replace(regexp_replace(
         CASE
             WHEN (pattern ~~ 'refs/%'::text) THEN pattern
             ELSE ('refs/heads/'::text || pattern)
         END, '([\\.^$+(){}|\[\]])'::text, '\\\1'::text, 'g'::text), '?'::text, '[^/]'::text), '**'::text, ''::text), '*'::text, '[^/]*'::text), ''::text, '.*'::text)) || '$'::text)), false) AS "coalesce";
END;


--
-- Name: known_environments; Type: TABLE; Schema: ops; Owner: -
--

CREATE TABLE ops.known_environments (
    env_id text NOT NULL,
    tenant text NOT NULL,
    project_id text NOT NULL,
    name text NOT NULL,
    type text,
    kind text DEFAULT 'deploy'::text NOT NULL,
    branch_pattern text,
    on_push text DEFAULT 'queue'::text NOT NULL,
    needs_approval boolean DEFAULT false NOT NULL,
    concurrency integer,
    queue_ttl interval,
    created_at timestamp with time zone NOT NULL,
    created_by text NOT NULL,
    CONSTRAINT concurrency_is_positive CHECK ((concurrency > 0)),
    CONSTRAINT known_push CHECK ((on_push = ANY (ARRAY['queue'::text, 'cancel_queued'::text, 'cancel_all'::text]))),
    CONSTRAINT known_type CHECK ((type = ANY (ARRAY['dev'::text, 'staging'::text, 'prod'::text]))),
    CONSTRAINT ttl_is_positive CHECK ((queue_ttl > '00:00:00'::interval))
);

ALTER TABLE ONLY ops.known_environments FORCE ROW LEVEL SECURITY;


--
-- Name: new_environment(text, text, text, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.new_environment(tenant text, project_id text, name text, actor text) RETURNS ops.known_environments
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if (select s.strict_projects from ops.settings s
       where s.tenant in (new_environment.tenant, '*') order by s.tenant = '*' limit 1) then  -- guard: strict
    perform holdfast.refuse(
      'RN004', format('there is no environment %s of project %s', new_environment.name, new_environment.project_id),
      'define it with ops.define_environment: strict_projects is on', 'p_project_id');
  end if;
  return ops.register_environment(
    new_environment.tenant, new_environment.project_id, new_environment.name, new_environment.actor);
end
$$;


--
-- Name: run_approvals; Type: TABLE; Schema: ops; Owner: -
--

CREATE TABLE ops.run_approvals (
    step_id bigint NOT NULL,
    tenant text NOT NULL,
    requested_by text NOT NULL,
    requested_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    decision text,
    decided_by text,
    decided_at timestamp with time zone,
    login text,
    reason text,
    CONSTRAINT decision_is_whole CHECK (((decision IS NULL) = (decided_at IS NULL))),
    CONSTRAINT known_decision CHECK ((decision = ANY (ARRAY['approved'::text, 'rejected'::text, 'expired'::text, 'cancelled'::text])))
);

ALTER TABLE ONLY ops.run_approvals FORCE ROW LEVEL SECURITY;


--
-- Name: run_artifacts; Type: TABLE; Schema: ops; Owner: -
--

CREATE TABLE ops.run_artifacts (
    artifact_id text NOT NULL,
    step_id bigint NOT NULL,
    tenant text NOT NULL,
    type text NOT NULL,
    url text NOT NULL,
    digest text,
    size_bytes bigint,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT size_is_not_negative CHECK ((size_bytes >= 0))
);

ALTER TABLE ONLY ops.run_artifacts FORCE ROW LEVEL SECURITY;


--
-- Name: prune_facts(bigint[], uuid[]); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.prune_facts(step_ids bigint[], run_ids uuid[]) RETURNS void
    LANGUAGE sql
    BEGIN ATOMIC
 DELETE FROM ops.run_artifacts a
   WHERE (a.step_id = ANY (prune_facts.step_ids));
 DELETE FROM ops.run_approvals a
   WHERE (a.step_id = ANY (prune_facts.step_ids));
 DELETE FROM ops.run_facts f
   WHERE (f.step_id = ANY (prune_facts.step_ids));
END;


--
-- Name: queue_push(text, text, text, jsonb, text, text, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.queue_push(p_repository text, p_git_ref text, p_git_sha text, p_metadata jsonb DEFAULT '{}'::jsonb, p_idempotency_key text DEFAULT NULL::text, p_actor text DEFAULT NULL::text, p_tenant text DEFAULT 'default'::text) RETURNS TABLE(run_id text, status text, queued_at timestamp with time zone, project_id text, env_id text, is_new boolean)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
  given constant jsonb := ops.checked_metadata(p_metadata);
  actor constant text := coalesce(p_actor, session_user);
  place ops.known_environments;
  facts ops.run_facts;
  key text;
begin
  perform holdfast.check_tenant(p_tenant);
  for place in
    select e.* from ops.known_projects p
      join ops.known_environments e on e.tenant = p.tenant and e.project_id = p.project_id
     where p.tenant = p_tenant and lower(p.repository) = lower(p_repository)
       and ops.matches_branch(e.branch_pattern, p_git_ref)
     order by e.env_id
  loop
    key := p_idempotency_key || ':' || place.env_id;
    queue_push.is_new := not exists (select from ops.run_facts f where f.tenant = p_tenant and f.idempotency_key = key);
    facts := ops.begin_run(place.project_id, place.name, p_git_sha, p_git_ref, given, key,
                           jsonb_build_object('kind', place.kind), actor, p_tenant);
    if queue_push.is_new and place.on_push <> 'queue' then
      perform ops.supersede(facts, place.on_push);
    end if;
    queue_push.run_id := facts.run_id;
    queue_push.status := facts.status;
    queue_push.queued_at := facts.queued_at;
    queue_push.project_id := facts.project_id;
    queue_push.env_id := facts.env_id;
    return next;
  end loop;
end
$$;


--
-- Name: queue_run(text, text, text, text, jsonb, text, text, integer, timestamp with time zone, interval, text, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.queue_run(p_project_id text, p_env text, p_git_sha text, p_git_ref text, p_metadata jsonb DEFAULT '{}'::jsonb, p_idempotency_key text DEFAULT NULL::text, p_kind text DEFAULT NULL::text, p_priority integer DEFAULT 0, p_due_at timestamp with time zone DEFAULT NULL::timestamp with time zone, p_ttl interval DEFAULT NULL::interval, p_actor text DEFAULT NULL::text, p_tenant text DEFAULT 'default'::text) RETURNS TABLE(run_id text, status text, queued_at timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
  -- A variable: passed as it is, session_user would give its collation to all that begin_run compares.
  actor constant text := coalesce(p_actor, session_user);
begin
  if p_ttl <= '0' then
    perform holdfast.refuse('RN005', format('ttl must be longer than 0, got %s', p_ttl), 'use minutes or hours',
                            'p_ttl');
  end if;
  return query
  select f.run_id, f.status, f.queued_at
    from ops.begin_run(
           p_project_id, p_env, p_git_sha, p_git_ref, ops.checked_metadata(p_metadata), p_idempotency_key,
           jsonb_build_object('kind', p_kind, 'priority', p_priority, 'due_at', p_due_at, 'ttl', p_ttl),
           actor, p_tenant) f;
end
$$;


--
-- Name: record_delivery(text, text, text, text, text, text, text, text[], text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.record_delivery(p_source text, p_delivery text, p_event text, p_outcome text, p_repository text DEFAULT NULL::text, p_git_ref text DEFAULT NULL::text, p_git_sha text DEFAULT NULL::text, p_run_ids text[] DEFAULT '{}'::text[], p_tenant text DEFAULT 'default'::text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform holdfast.check_tenant(p_tenant);
  perform holdfast.check_name('source', coalesce(p_source, ''), 100);
  perform holdfast.check_name('delivery', coalesce(p_delivery, ''), 400);
  perform holdfast.check_name('event', coalesce(p_event, ''), 100);
  perform holdfast.check_name('outcome', coalesce(p_outcome, ''));
  insert into ops.deliveries (tenant, source, delivery, event, repository, git_ref, git_sha, outcome, run_ids,
                              received_at)
  values (p_tenant, p_source, p_delivery, p_event, left(p_repository, 400), left(p_git_ref, 400), left(p_git_sha, 200),
          p_outcome, coalesce(p_run_ids, '{}'), holdfast.clock())
  on conflict do nothing;
end
$$;


--
-- Name: record_moves(holdfast.shared_move[]); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.record_moves(moves holdfast.shared_move[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  actor constant text := coalesce(nullif(current_setting('holdfast.actor', true), ''), session_user);
  why constant text := nullif(current_setting('holdfast.reason', true), '');
begin
  if record_moves.moves[1].event = 'created' then
    insert into ops.run_facts as f (
      run_id, step_id, queued_at, updated_at, expires_at, tenant, kind, project_id, env_id, env, git_sha, git_ref,
      queued_by, retry_of, rollback_of, metadata)
    select coalesce(s.input ->> 'run_id', 'run-' || gen_random_uuid()), s.id, s.created_at, s.created_at,
           (s.input ->> 'expires_at')::timestamptz, s.tenant, regexp_replace(s.kind, '^ops:', ''),
           s.input ->> 'project_id', s.input ->> 'env_id', s.input ->> 'env', s.input ->> 'git_sha',
           s.input ->> 'git_ref', s.input ->> 'queued_by', s.input ->> 'retry_of', s.input ->> 'rollback_of',
           case when jsonb_typeof(s.input -> 'metadata') = 'object' then s.input -> 'metadata' else '{}' end
      from unnest(record_moves.moves) m, unnest(m.step_ids) u (step_id)
      join holdfast.steps s on s.id = u.step_id
    on conflict (run_id) do update  -- reserved with its idempotency key
      set step_id = excluded.step_id, queued_at = excluded.queued_at, updated_at = excluded.updated_at,
          expires_at = excluded.expires_at, kind = excluded.kind, project_id = excluded.project_id,
          env_id = excluded.env_id, env = excluded.env, git_sha = excluded.git_sha, git_ref = excluded.git_ref,
          queued_by = excluded.queued_by, retry_of = excluded.retry_of, rollback_of = excluded.rollback_of,
          metadata = excluded.metadata
      where f.step_id is null and f.tenant = excluded.tenant;
    return;
  end if;
  update ops.run_facts f
     set status = m.to_state, updated_at = clock,
         claimed_by = coalesce(s.lease_owner, f.claimed_by),
         -- Not before they were queued, or claimed, even if the server's clock was set back.
         started_at = coalesce(f.started_at, case when s.lease_owner is not null
                                                  then greatest(f.queued_at, s.claimed_at) end),
         running_at = coalesce(f.running_at, case when m.to_state = 'running' then greatest(f.started_at, clock) end),
         finished_at = case when s.finished_at is not null
                            then greatest(s.finished_at, coalesce(f.running_at, f.started_at, f.queued_at)) end,
         lease = case when m.event = 'claimed' then s.lease_until - s.claimed_at else f.lease end,
         metadata = f.metadata || case
           when m.event = 'expired' then jsonb_build_object(
             'cancelled_by', 'system', 'reason', ops.stale_reason(m.from_state, f.started_at, clock),
             'original_worker', f.claimed_by, 'claimed_at', f.started_at)
           when m.to_state = 'cancelled' then jsonb_strip_nulls(jsonb_build_object(
             'cancelled_by', actor, 'reason', why, 'timestamp', clock))
           when m.to_state = 'success' and jsonb_typeof(s.result) = 'object' then s.result
           when m.to_state = 'failed' and s.error is not null then
             jsonb_build_object('error', holdfast.error_text(s.error))
             || case when jsonb_typeof(s.error -> 'metadata') = 'object' then s.error -> 'metadata' else '{}' end
           else '{}' end
    from unnest(record_moves.moves) m, unnest(m.step_ids) u (step_id)
    join holdfast.steps s on s.id = u.step_id
   where f.step_id = u.step_id;
  if exists (select from unnest(record_moves.moves) m where m.from_state = 'queued' and m.to_state = 'cancelled') then
    update ops.run_approvals a
       set decision = 'cancelled', decided_by = actor, decided_at = clock, reason = why
     where a.decision is null
       and a.step_id = any (array(select u.step_id from unnest(record_moves.moves) m, unnest(m.step_ids) u (step_id)));
  end if;
end
$$;


--
-- Name: refuse_request(text, text, text, text, text, text, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.refuse_request(project_id text, env text, kind text, git_sha text, git_ref text, key text, actor text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform holdfast.check_name('project_id', coalesce(refuse_request.project_id, ''));
  perform holdfast.check_name('env', coalesce(refuse_request.env, ''), 100);
  perform holdfast.check_name('kind', refuse_request.kind, 100);
  perform holdfast.check_name('git_sha', refuse_request.git_sha);
  perform holdfast.check_name('git_ref', refuse_request.git_ref, 400);
  perform holdfast.check_name('idempotency_key', refuse_request.key, 400);
  perform holdfast.check_name('actor', refuse_request.actor);
end
$$;


--
-- Name: refuse_write(); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.refuse_write() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if tg_table_name = 'run_events' then
    perform holdfast.refuse('RN008', format('run_events is append-only: %s is refused', lower(tg_op)),
                            'append an event with ops.append_event; each move of a run writes its own');
  end if;
  perform holdfast.refuse('RN005', format('ops.%s cannot be changed by %s', tg_table_name, lower(tg_op)),
    case tg_table_name
      when 'projects' then 'use ops.define_project'
      when 'environments' then 'use ops.define_environment'
      when 'artifacts' then 'use ops.add_artifact'
      when 'approvals' then 'use ops.decide_approval'
      when 'webhook_deliveries' then 'the webhook receiver records them'
      else case tg_op when 'INSERT' then 'queue a run with ops.queue_run'
                      else 'end a run with ops.cancel_run; retention removes finished runs' end end);
  return null;
end
$$;


--
-- Name: register_environment(text, text, text, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.register_environment(tenant text, project_id text, name text, actor text) RETURNS ops.known_environments
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column  -- `on conflict` cannot qualify its columns
declare
  clock constant timestamptz := holdfast.clock();
  slug constant text := trim('-' from left(lower(regexp_replace(
    register_environment.name, '[^[:alnum:]]+', '-', 'g')), 40));
  place ops.known_environments;
begin
  if not exists (select from ops.known_environments e where e.tenant = register_environment.tenant) then
    perform holdfast.define_schedule('ops-monitor', 'monitor', 'ops', every => interval '5 minutes', missed => 'one',
                                     tenant => register_environment.tenant);
  end if;
  insert into ops.known_projects (tenant, project_id, created_at, created_by)
  values (register_environment.tenant, register_environment.project_id, clock, register_environment.actor)
  on conflict (tenant, project_id) do nothing;
  insert into ops.known_environments (env_id, tenant, project_id, name, type, created_at, created_by)
  values (format('env-%s-%s', slug, left(md5(concat_ws(
            E'\n', register_environment.tenant, register_environment.project_id, register_environment.name)), 10)),
          register_environment.tenant, register_environment.project_id, register_environment.name,
          case lower(register_environment.name)
            when 'dev' then 'dev' when 'development' then 'dev' when 'staging' then 'staging'
            when 'prod' then 'prod' when 'production' then 'prod' end,
          clock, register_environment.actor)
  on conflict (tenant, project_id, name) do nothing;
  select e.* into strict place from ops.known_environments e
   where e.tenant = register_environment.tenant and e.project_id = register_environment.project_id
     and e.name = register_environment.name;
  return place;
end
$$;


--
-- Name: repeated_event(bigint, text, text, text, timestamp with time zone); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.repeated_event(step_id bigint, level text, message text, key text, clock timestamp with time zone) RETURNS bigint
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_sort TO 'off'
    SET jit TO 'off'
    AS $$
declare
  since constant timestamptz := repeated_event.clock - interval '10 seconds';
  note record;
begin
  if repeated_event.key is not null then
    return (select k.note_id from holdfast.note_keys k
             where k.step_id = repeated_event.step_id and k.key = repeated_event.key);
  end if;
  for note in
    select n.id, n.at, n.level, n.message
      from holdfast.notes n
     -- The month's partition: a condition on the seconds would read all notes of the run to find that they are older.
     where n.step_id = repeated_event.step_id and n.at >= date_trunc('month', since)
     order by n.id desc
  loop
    exit when note.at <= since;  -- guard: window
    if note.level = repeated_event.level and note.message = repeated_event.message then
      return note.id;
    end if;
  end loop;
  return null;
end
$$;


--
-- Name: retry_in_place(bigint, bigint, integer, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.retry_in_place(step_id bigint, lease_id bigint, executions integer, error text) RETURNS interval
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  step constant holdfast.steps := ops.held_run(retry_in_place.step_id, retry_in_place.lease_id);
  law holdfast.policies;
  own text;
  delay interval;
  seconds numeric;
begin
  perform holdfast.check_note('warn', retry_in_place.error, '{}', null);
  own := regexp_replace(step.kind, '^ops:', 'ops.in_place:');
  select p.* into strict law
    from unnest(array[holdfast.policy_name(own, step.tenant), own,
                      holdfast.policy_name('ops.in_place', step.tenant), 'ops.in_place'])
           with ordinality n (name, place)
    join holdfast.policies p on p.policy = n.name
   order by n.place
   limit 1;
  if coalesce(retry_in_place.executions, 1) >= law.tries or not law.retryable then  -- guard: budget
    return null;
  end if;
  delay := holdfast.backoff(law.policy, greatest(retry_in_place.executions, 1));
  seconds := trim_scale(extract(epoch from delay));
  perform holdfast.write_note(
    step, 'warn',
    format('Retry %s/%s in %s seconds: %s', retry_in_place.executions, law.tries, seconds,
           retry_in_place.error),
    jsonb_build_object('execution', retry_in_place.executions, 'of', law.tries,
                       'retry_in_seconds', seconds),
    format('retry:%s:%s', step.lease_id, retry_in_place.executions), clock);
  return delay;
end
$$;


--
-- Name: retry_run(text, text, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.retry_run(p_run_id text, p_reason text DEFAULT NULL::text, p_actor text DEFAULT NULL::text) RETURNS TABLE(run_id text, status text, queued_at timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
  actor constant text := coalesce(p_actor, session_user);
  held record;
  step holdfast.steps;
  facts ops.run_facts;
begin
  perform holdfast.check_reason(p_reason);
  select * into held from ops.lock_run(p_run_id);
  step := held.step;
  facts := held.facts;
  if step.finished_at is null then
    perform holdfast.refuse('RN010', format('run %s is %s: it is not over', facts.run_id, step.state),
                            'wait for its end, or cancel it first with ops.cancel_run', 'p_run_id');
  end if;
  return query
  select n.run_id, n.status, n.queued_at from ops.again(facts, facts, 'retry_of', p_reason, actor) n;
  perform holdfast.mark_resolved(step, coalesce(p_reason, 'retried'), actor);
end
$$;


--
-- Name: retry_step(text, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.retry_step(id text, reason text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  return (select 'retried by ' || r.run_id from ops.retry_run(retry_step.id, retry_step.reason) r);
end
$$;


--
-- Name: rollback_run(text, text, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.rollback_run(p_run_id text, p_reason text DEFAULT NULL::text, p_actor text DEFAULT NULL::text) RETURNS TABLE(run_id text, status text, queued_at timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
  actor constant text := coalesce(p_actor, session_user);
  held record;
  step holdfast.steps;
  facts ops.run_facts;
  source ops.run_facts;
begin
  perform holdfast.check_reason(p_reason);
  select * into held from ops.lock_run(p_run_id);
  step := held.step;
  facts := held.facts;
  if step.finished_at is null then
    perform holdfast.refuse('RN010', format('run %s is %s: it is not over', facts.run_id, step.state),
                            'wait for its end, or cancel it first with ops.cancel_run', 'p_run_id');
  end if;
  select f.* into source from ops.run_facts f
   where f.env_id = facts.env_id and f.status = 'success' and f.step_id < facts.step_id and f.kind = facts.kind
     and f.git_sha is distinct from facts.git_sha and f.git_sha is not null
   order by f.step_id desc
   limit 1;
  if not found then
    perform holdfast.refuse(
      'RN010', format('no other sha succeeded in %s before run %s', coalesce(facts.env, 'its environment'),
                      facts.run_id),
      'queue a run with the sha to go back to', 'p_run_id');
  end if;
  return query
  select n.run_id, n.status, n.queued_at
    from ops.again(facts, source, 'rollback_of', p_reason, actor) n;
end
$$;


--
-- Name: set_strict_projects(boolean, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.set_strict_projects(p_is_strict boolean, p_tenant text DEFAULT '*'::text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column  -- `on conflict` cannot qualify its columns
begin
  if p_is_strict is null then
    perform holdfast.refuse('RN005', 'strict_projects must be true or false', 'name one of them', 'p_is_strict');
  end if;
  if p_tenant = '*' then
    perform holdfast.check_all_tenants('strict_projects for all tenants');
  else
    perform holdfast.check_tenant(p_tenant);
  end if;
  insert into ops.settings (tenant, strict_projects) values (p_tenant, p_is_strict)
  on conflict (tenant) do update set strict_projects = excluded.strict_projects;
end
$$;


--
-- Name: stale_reason(text, timestamp with time zone, timestamp with time zone); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.stale_reason(status text, started_at timestamp with time zone, clock timestamp with time zone) RETURNS text
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT
         CASE
             WHEN (status = 'running'::text) THEN 'Stale run (running without heartbeat)'::text
             WHEN (started_at <= (clock - '00:05:00'::interval)) THEN 'Stale run (claimed for >5 minutes without events)'::text
             ELSE 'Stale run (claimed without heartbeat)'::text
         END AS "case";
END;


--
-- Name: start_for_tick(text, jsonb, jsonb, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.start_for_tick(target text, input jsonb, options jsonb, tenant text) RETURNS text[]
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  kind constant text := coalesce(current_setting('holdfast.actor_kind', true), '');
  actor constant text := coalesce(nullif(current_setting('holdfast.actor', true), ''), session_user);
  reason constant text := coalesce(current_setting('holdfast.reason', true), '');
  place ops.known_environments;
  ids text[] := '{}';
begin
  perform holdfast.refuse_options('ops', start_for_tick.options, '{priority,ttl}');
  if start_for_tick.target = 'monitor' then
    perform from ops.sweep_runs(start_for_tick.tenant);
    perform holdfast.set_actor(kind, actor, reason);
    return '{monitor}';
  end if;
  for place in
    select e.* from ops.known_environments e
     where e.tenant = start_for_tick.tenant
       and holdfast.matches(start_for_tick.input ->> 'project_id', e.project_id)
       and holdfast.matches(start_for_tick.input ->> 'env', e.name)
     order by e.env_id
  loop
    ids := ids || (ops.begin_run(
      place.project_id, place.name, start_for_tick.input ->> 'git_sha', start_for_tick.input ->> 'git_ref',
      ops.checked_metadata(start_for_tick.input -> 'metadata') || '{"trigger": "schedule"}', null,
      jsonb_build_object('kind', start_for_tick.target, 'priority', start_for_tick.options -> 'priority',
                         'ttl', start_for_tick.options -> 'ttl'),
      actor, start_for_tick.tenant)).run_id;
  end loop;
  if ids = '{}' then
    perform holdfast.refuse(
      'RN004', format('no environment of tenant %s matches the schedule of %s', start_for_tick.tenant,
                      start_for_tick.target),
      'ops.environments lists them; check project_id and env in its input', 'input');
  end if;
  return ids;
end
$$;


--
-- Name: step_of_run(text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.step_of_run(run_id text) RETURNS SETOF bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  return query
  select f.step_id from ops.run_facts f
   where f.run_id = step_of_run.run_id and f.step_id is not null
     and holdfast.matches_any(holdfast.allowed_tenants(), f.tenant);  -- guard: tenant
end
$$;


--
-- Name: supersede(ops.run_facts, text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.supersede(facts ops.run_facts, on_push text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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


--
-- Name: sweep_runs(text); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.sweep_runs(p_tenant text DEFAULT NULL::text) RETURNS TABLE(run_id text, reason text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.narrow_tenants(case when p_tenant is not null then array[p_tenant] end);
  moves constant holdfast.step_move[] := array(
    select (s.id, s.lease_id, 'expired', null, null, jsonb_build_object(
              'type', 'LeaseExpired', 'message', ops.stale_reason(s.state, s.claimed_at, clock)), null
           )::holdfast.step_move
      from holdfast.steps s
     where s.id = any (array(
             select f.step_id from ops.run_facts f
              where f.status in ('claimed', 'running') and holdfast.matches_any(allowed, f.tenant)))
       and ((s.state = 'claimed' and s.claimed_at < clock - interval '5 minutes')  -- guard: stale
            or s.lease_until < clock)
     order by s.id
       for update skip locked);
  stale bigint[];
begin
  if moves <> '{}' then
    perform holdfast.set_actor('system', 'monitor');
    stale := array(select m.step_id from holdfast.move_steps(moves, clock) m);
    perform holdfast.set_actor();
    return query
    select f.run_id, f.metadata ->> 'reason' from ops.run_facts f where f.step_id = any (stale) order by f.step_id;
  end if;
  return query select e.run_id, e.reason from ops.expire_runs(clock, allowed) e;
end
$$;


--
-- Name: take_stale_update(); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.take_stale_update() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  settable constant text[] := '{status,finished_at,updated_at,metadata}';
  odd constant text := (
    select string_agg(n.key, ', ' order by n.key)
      from jsonb_each(to_jsonb(new) - settable) n
     where n.value is distinct from to_jsonb(old) -> n.key);
begin
  if new is not distinct from old then
    return new;
  end if;
  if odd is not null or new.finished_at is null or not new.metadata @> old.metadata
     or old.status <> 'claimed' or new.status <> 'cancelled' then  -- guard: statement
    raise exception using errcode = 'RN005',
      message = format('ops.runs cannot be updated so: %s of run %s, %s to %s', coalesce(odd, 'status'), old.run_id,
                       old.status, new.status),
      hint = 'the one UPDATE cancels claimed runs that are stale, and adds to their metadata; report with '
             'ops.append_event, end a run with ops.finish_run, cancel one with ops.cancel_run';
  end if;
  return case when ops.cancel_if_stale(old.run_id, new.metadata) then new end;
end
$$;


--
-- Name: violations(); Type: FUNCTION; Schema: ops; Owner: -
--

CREATE FUNCTION ops.violations() RETURNS TABLE(invariant text, subject text, detail text)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  select 'run_has_facts', 'step ' || s.id, 'it is a run, but ops.run_facts has no row of it'
    from holdfast.steps s
   where s.machine = 'ops.run' and not exists (select from ops.run_facts f where f.step_id = s.id)
  union all
  select 'facts_have_a_run', f.run_id, format('there is no step %s', f.step_id)
    from ops.run_facts f
   where not exists (select from holdfast.steps s where s.id = f.step_id)
  union all
  select 'facts_agree_with_the_run', f.run_id, format('its step is %s, its facts say %s', s.state, f.status)
    from ops.run_facts f join holdfast.steps s on s.id = f.step_id
   where f.status <> s.state or (f.finished_at is null) <> (s.finished_at is null) or f.tenant <> s.tenant
      or (s.lease_owner is not null and f.claimed_by is distinct from s.lease_owner)
  union all
  select 'queued_is_unclaimed', f.run_id, format('queued, but claimed_by %s, started_at %s, finished_at %s',
                                                 f.claimed_by, f.started_at, f.finished_at)
    from ops.run_facts f
   where f.status = 'queued' and num_nonnulls(f.claimed_by, f.started_at, f.finished_at) > 0
  union all
  select 'finished_is_over', f.run_id, format('%s, finished_at %s', f.status, f.finished_at)
    from ops.run_facts f
   where (f.finished_at is null) <> (f.status in ('queued', 'claimed', 'running'))
  union all
  select 'claimed_has_a_worker', f.run_id, format('%s, claimed_by %s, started_at %s', f.status, f.claimed_by,
                                                  f.started_at)
    from ops.run_facts f
   where (f.claimed_by is null) <> (f.started_at is null)
      or (f.claimed_by is null and f.status not in ('queued', 'cancelled'))
  union all
  select 'times_in_order', f.run_id, format('queued %s, started %s, running %s, finished %s', f.queued_at, f.started_at,
                                            f.running_at, f.finished_at)
    from ops.run_facts f
   where f.queued_at > f.started_at or f.started_at > f.running_at
      or coalesce(f.running_at, f.started_at, f.queued_at) > f.finished_at
  union all
  select 'waiting_has_an_approval', f.run_id, 'it waits for an approval that nobody can give'
    from holdfast.steps s join ops.run_facts f on f.step_id = s.id
   where s.machine = 'ops.run' and s.parked_for = 'approval'
     and not exists (select from ops.run_approvals a where a.step_id = s.id and a.decision is null)
  union all
  select 'approval_has_a_waiting_run', f.run_id, format('%s, but its approval is pending', f.status)
    from ops.run_approvals a join ops.run_facts f on f.step_id = a.step_id join holdfast.steps s on s.id = a.step_id
   where a.decision is null and s.parked_for is distinct from 'approval'
$$;


--
-- Name: cancel_open(text[], text); Type: FUNCTION; Schema: work; Owner: -
--

CREATE FUNCTION work.cancel_open(ids text[], reason text) RETURNS void
    LANGUAGE sql
    BEGIN ATOMIC
 SELECT holdfast.cancel_open(ids) AS cancel_open;
END;


--
-- Name: journal; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.journal (
    id bigint DEFAULT nextval('holdfast.stream_ids'::regclass) NOT NULL,
    at timestamp with time zone NOT NULL,
    tenant text NOT NULL,
    machine text NOT NULL,
    from_state text NOT NULL,
    event text NOT NULL,
    to_state text NOT NULL,
    actor_kind text NOT NULL,
    actor text NOT NULL,
    step_id bigint,
    run_id uuid,
    attempt integer,
    lease_id bigint,
    reason text,
    error jsonb,
    login text
)
PARTITION BY RANGE (at);

ALTER TABLE ONLY holdfast.journal FORCE ROW LEVEL SECURITY;


--
-- Name: note_keys; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.note_keys (
    step_id bigint NOT NULL,
    key text NOT NULL,
    note_id bigint NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

ALTER TABLE ONLY holdfast.note_keys FORCE ROW LEVEL SECURITY;


--
-- Name: notes; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.notes (
    id bigint DEFAULT nextval('holdfast.stream_ids'::regclass) NOT NULL,
    at timestamp with time zone NOT NULL,
    tenant text NOT NULL,
    step_id bigint NOT NULL,
    run_id uuid,
    attempt integer NOT NULL,
    lease_id bigint,
    level text NOT NULL,
    message text NOT NULL,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT known_level CHECK ((level = ANY (ARRAY['debug'::text, 'info'::text, 'warn'::text, 'error'::text])))
)
PARTITION BY RANGE (at);

ALTER TABLE ONLY holdfast.notes FORCE ROW LEVEL SECURITY;


--
-- Name: tasks; Type: VIEW; Schema: work; Owner: -
--

CREATE VIEW work.tasks WITH (security_invoker='true') AS
 SELECT id,
    kind AS type,
    state AS status,
    input,
    result AS output,
        CASE
            WHEN (error IS NOT NULL) THEN (jsonb_build_object('type', NULL::unknown, 'message', NULL::unknown, 'trace', NULL::unknown) ||
            CASE jsonb_typeof(error)
                WHEN 'object'::text THEN error
                ELSE jsonb_build_object('message', (error #>> '{}'::text[]))
            END)
            ELSE NULL::jsonb
        END AS error,
    lease_until AS lease_timeout,
    lease_owner,
    lease_id,
        CASE
            WHEN (lease_id IS NOT NULL) THEN claimed_at
            ELSE NULL::timestamp with time zone
        END AS locked_at,
    attempt AS try_count,
    ( SELECT p.tries
           FROM holdfast.step_policy(s.policy, s.kind, s.machine, s.tenant) p(policy, tries, waits, base, growth, law, longest, jitter, jitter_in_seconds, longest_retry_after, tenant, retryable)) AS max_tries,
    failures,
    created_at,
    GREATEST(created_at, claimed_at, finished_at, ( SELECT j.at
           FROM holdfast.journal j
          WHERE (j.step_id = s.id)
          ORDER BY j.id DESC
         LIMIT 1)) AS updated_at,
    finished_at,
    (finished_at - claimed_at) AS duration,
    ( SELECT n.payload
           FROM (holdfast.note_keys k
             JOIN holdfast.notes n ON (((n.step_id = k.step_id) AND (n.id = k.note_id))))
          WHERE ((k.step_id = s.id) AND (k.key = ('usage:'::text || s.attempt)))) AS usage,
    queue,
    priority,
    tenant,
    COALESCE(due_at, parked_due_at) AS due_at,
    NULLIF(split_part(((input -> '$trace'::text) ->> 'traceparent'::text), '-'::text, 2), ''::text) AS trace_id
   FROM holdfast.steps s
  WHERE ((machine = 'work.task'::text) AND COALESCE((tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true));


--
-- Name: claim_next_task(text, text[], text, interval); Type: FUNCTION; Schema: work; Owner: -
--

CREATE FUNCTION work.claim_next_task(worker text DEFAULT format('%s:%s'::text, SESSION_USER, pg_backend_pid()), types text[] DEFAULT NULL::text[], queue text DEFAULT 'default'::text, lease interval DEFAULT NULL::interval) RETURNS SETOF work.tasks
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
  claimed constant bigint := (
    select c.step_id from holdfast.claim_steps(
      claim_next_task.worker, claim_next_task.queue, claim_next_task.types, 1, claim_next_task.lease,
      machine => 'work.task') c);
begin
  -- A statement of its own, so that it sees the rows that the claim wrote.
  return query select t.* from work.tasks t where t.id = claimed;
end
$$;


--
-- Name: is_any_open(text[]); Type: FUNCTION; Schema: work; Owner: -
--

CREATE FUNCTION work.is_any_open(ids text[]) RETURNS boolean
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT holdfast.is_any_open(ids) AS is_any_open;
END;


--
-- Name: recover_expired_leases(integer); Type: FUNCTION; Schema: work; Owner: -
--

CREATE FUNCTION work.recover_expired_leases(batch integer DEFAULT NULL::integer) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  return (select count(*) from holdfast.rescue_steps(recover_expired_leases.batch));
end
$$;


--
-- Name: refuse_write(); Type: FUNCTION; Schema: work; Owner: -
--

CREATE FUNCTION work.refuse_write() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  if tg_table_name = 'audit_logs' then
    perform holdfast.refuse('RN008', format('audit_logs is append-only: %s is refused', lower(tg_op)),
                            'each move of a task writes its own entry');
  end if;
  perform holdfast.refuse('RN005', format('work.tasks cannot be changed by %s', lower(tg_op)), case tg_op
    when 'INSERT' then 'start a task with holdfast.start_task(name, input)'
    when 'UPDATE' then 'claim with work.claim_next_task, report with holdfast.settle_steps, retry a failed '
                       'task with holdfast.retry, cancel one with holdfast.cancel'
    else 'end a task with holdfast.cancel; retention removes finished tasks by the rules of holdfast.retention_list, '
         'at once with `holdfast retention run`' end);
  return null;
end
$$;


--
-- Name: start_for_tick(text, jsonb, jsonb, text); Type: FUNCTION; Schema: work; Owner: -
--

CREATE FUNCTION work.start_for_tick(target text, input jsonb, options jsonb, tenant text) RETURNS text[]
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
  perform holdfast.refuse_options('work', start_for_tick.options, '{queue,priority,limits,weight}');
  return array[holdfast.start_step(
    'work.task', start_for_tick.target, start_for_tick.input, start_for_tick.options ->> 'queue',
    priority => coalesce((start_for_tick.options ->> 'priority')::int, 0), tenant => start_for_tick.tenant,
    limits => case when start_for_tick.options ? 'limits'
                   then array(select jsonb_array_elements_text(start_for_tick.options -> 'limits')) end,
    weight => (start_for_tick.options ->> 'weight')::numeric)::text];
end
$$;


--
-- Name: step_dag; Type: VIEW; Schema: flow; Owner: -
--

CREATE VIEW flow.step_dag WITH (security_invoker='true') AS
 SELECT n.step_id,
    n.run_id AS task_id,
    n.name,
    p.ids AS parent_step_ids,
    p.names AS parent_names,
    c.ids AS child_step_ids,
    c.names AS child_names,
    (p.ids = '{}'::bigint[]) AS is_root_step,
    (c.ids = '{}'::bigint[]) AS is_leaf_step
   FROM (((holdfast.run_steps n
     JOIN holdfast.runs r ON (((r.id = n.run_id) AND (r.machine = 'flow.task'::text) AND COALESCE((r.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true))))
     CROSS JOIN LATERAL ( SELECT COALESCE(array_agg(e.step_id ORDER BY e.step_id), '{}'::bigint[]) AS ids,
            COALESCE(array_agg(m.name ORDER BY e.step_id), '{}'::text[]) AS names
           FROM (holdfast.edges e
             LEFT JOIN holdfast.run_steps m ON (((m.run_id = n.run_id) AND (m.step_id = e.step_id))))
          WHERE (e.next_id = n.step_id)) p)
     CROSS JOIN LATERAL ( SELECT COALESCE(array_agg(e.next_id ORDER BY e.next_id), '{}'::bigint[]) AS ids,
            COALESCE(array_agg(m.name ORDER BY e.next_id), '{}'::text[]) AS names
           FROM (holdfast.edges e
             LEFT JOIN holdfast.run_steps m ON (((m.run_id = n.run_id) AND (m.step_id = e.next_id))))
          WHERE (e.step_id = n.step_id)) c);


--
-- Name: step_templates; Type: VIEW; Schema: flow; Owner: -
--

CREATE VIEW flow.step_templates WITH (security_invoker='true') AS
 SELECT d.namespace,
    d.name AS flow,
    d.version,
    (t.no)::integer AS place,
    (t.step ->> 'name'::text) AS name,
    (t.step ->> 'kind'::text) AS handler,
    ARRAY( SELECT a.name
           FROM jsonb_array_elements_text(COALESCE((t.step -> 'after'::text), '[]'::jsonb)) a(name)) AS depends_on,
    ((t.step ->> 'retry_limit'::text))::integer AS retry_limit,
    COALESCE(((t.step ->> 'retryable'::text))::boolean, true) AS retryable,
    COALESCE(((t.step ->> 'skippable'::text))::boolean, false) AS skippable,
    (t.step ->> 'queue'::text) AS queue,
    (t.step -> 'config'::text) AS handler_config,
    (t.step ->> 'description'::text) AS description,
    d.tenant
   FROM flow.definitions d,
    LATERAL jsonb_array_elements(d.steps) WITH ORDINALITY t(step, no)
  WHERE ((d.tenant = '*'::text) OR COALESCE((d.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true));


--
-- Name: step_transitions; Type: VIEW; Schema: flow; Owner: -
--

CREATE VIEW flow.step_transitions WITH (security_invoker='true') AS
 SELECT j.id,
    j.step_id,
    j.from_state,
    j.to_state,
    jsonb_strip_nulls(jsonb_build_object('event', j.event, 'actor_kind', j.actor_kind, 'actor', j.actor, 'login', j.login, 'reason', j.reason, 'attempt', j.attempt, 'lease_id', j.lease_id, 'error', j.error)) AS metadata,
    j.id AS sort_key,
    (NOT (EXISTS ( SELECT
           FROM holdfast.journal l
          WHERE ((l.step_id = j.step_id) AND (l.id > j.id))))) AS most_recent,
    j.at AS created_at,
    j.tenant
   FROM holdfast.journal j
  WHERE ((j.machine = 'flow.step'::text) AND (j.step_id IS NOT NULL) AND COALESCE((j.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true))
UNION ALL
 SELECT NULL::bigint AS id,
    s.id AS step_id,
    NULL::text AS from_state,
    b.state AS to_state,
    '{"event": "created"}'::jsonb AS metadata,
    0 AS sort_key,
    ((s.last_event IS NULL) AND (NOT (EXISTS ( SELECT
           FROM holdfast.journal l
          WHERE (l.step_id = s.id))))) AS most_recent,
    s.created_at,
    s.tenant
   FROM (holdfast.steps s
     JOIN holdfast.machine_states b ON (((b.machine = s.machine) AND b.is_initial)))
  WHERE ((s.machine = 'flow.step'::text) AND COALESCE((s.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true));


--
-- Name: steps; Type: VIEW; Schema: flow; Owner: -
--

CREATE VIEW flow.steps WITH (security_invoker='true') AS
 SELECT s.id AS step_id,
    n.run_id AS task_id,
    n.name,
    s.kind AS handler,
    s.state,
    (s.state = ANY (ARRAY['complete'::text, 'resolved_manually'::text])) AS processed,
        CASE
            WHEN (s.state = ANY (ARRAY['complete'::text, 'resolved_manually'::text])) THEN s.finished_at
            ELSE NULL::timestamp with time zone
        END AS processed_at,
    (s.lease_id IS NOT NULL) AS in_process,
    s.failures AS attempts,
    p.tries AS retry_limit,
    (p.retryable AND ((s.state <> 'error'::text) OR (s.finished_at IS NULL) OR COALESCE((s.failures >= p.tries), false))) AS retryable,
    (EXISTS ( SELECT
           FROM holdfast.runs r,
            LATERAL ( SELECT d_1.steps
                   FROM flow.definitions d_1
                  WHERE ((d_1.name = r.name) AND (d_1.namespace = COALESCE((r.input ->> 'namespace'::text), 'default'::text)) AND (d_1.version = COALESCE((r.input ->> 'version'::text), '0.1.0'::text)) AND (d_1.tenant = ANY (ARRAY[r.tenant, '*'::text])))
                  ORDER BY (d_1.tenant = '*'::text)
                 LIMIT 1) d,
            LATERAL jsonb_array_elements(d.steps) t(value)
          WHERE ((r.id = n.run_id) AND ((t.value ->> 'name'::text) = n.name) AND ((t.value ->> 'skippable'::text))::boolean))) AS skippable,
    ((s.state = ANY (ARRAY['complete'::text, 'resolved_manually'::text])) AND ((EXISTS ( SELECT
           FROM holdfast.runs r
          WHERE ((r.id = n.run_id) AND ((r.input -> 'skip'::text) ? n.name)))) OR (EXISTS ( SELECT
           FROM holdfast.note_keys k
          WHERE ((k.step_id = s.id) AND (k.key = 'skipped'::text)))))) AS skipped,
        CASE
            WHEN (s.state = 'error'::text) THEN COALESCE(s.failed_at, s.claimed_at)
            ELSE s.claimed_at
        END AS last_attempted_at,
    s.failed_at AS last_failure_at,
        CASE
            WHEN (w.next_retry_at IS NOT NULL) THEN trim_scale(EXTRACT(epoch FROM (w.next_retry_at - s.failed_at)))
            ELSE NULL::numeric
        END AS backoff_request_seconds,
    w.next_retry_at,
    s.input AS inputs,
    s.result AS results,
    s.error,
    ARRAY( SELECT m.name
           FROM (holdfast.edges e
             JOIN holdfast.run_steps m ON (((m.run_id = n.run_id) AND (m.step_id = e.step_id))))
          WHERE (e.next_id = s.id)
          ORDER BY e.step_id) AS depends_on,
    s.queue,
    s.priority,
    s.attempt AS executions,
    s.lease_owner AS worker,
    s.lease_id,
    s.lease_until,
    s.created_at,
    s.finished_at,
    s.tenant
   FROM (((holdfast.run_steps n
     JOIN holdfast.steps s ON (((s.id = n.step_id) AND (s.run_id = n.run_id))))
     CROSS JOIN LATERAL ( SELECT
                CASE
                    WHEN (s.state = 'error'::text) THEN COALESCE(s.due_at, s.parked_due_at)
                    ELSE NULL::timestamp with time zone
                END AS next_retry_at) w)
     LEFT JOIN LATERAL holdfast.step_policy(s.policy, s.kind, s.machine, s.tenant) p(policy, tries, waits, base, growth, law, longest, jitter, jitter_in_seconds, longest_retry_after, tenant, retryable) ON (true))
  WHERE ((s.machine = 'flow.step'::text) AND COALESCE((s.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true));


--
-- Name: task_transitions; Type: VIEW; Schema: flow; Owner: -
--

CREATE VIEW flow.task_transitions WITH (security_invoker='true') AS
 SELECT id,
    run_id AS task_id,
    NULLIF(from_state, 'new'::text) AS from_state,
    to_state,
    jsonb_strip_nulls(jsonb_build_object('event', event, 'actor_kind', actor_kind, 'actor', actor, 'login', login, 'reason', reason, 'attempt', attempt, 'lease_id', lease_id, 'error', error)) AS metadata,
    id AS sort_key,
    (NOT (EXISTS ( SELECT
           FROM holdfast.journal l
          WHERE ((l.run_id = j.run_id) AND (l.step_id IS NULL) AND (l.id > j.id))))) AS most_recent,
    at AS created_at,
    tenant
   FROM holdfast.journal j
  WHERE ((machine = 'flow.task'::text) AND (step_id IS NULL) AND COALESCE((tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true));


--
-- Name: tasks; Type: VIEW; Schema: flow; Owner: -
--

CREATE VIEW flow.tasks WITH (security_invoker='true') AS
 SELECT id AS task_id,
    name,
    COALESCE((input ->> 'namespace'::text), 'default'::text) AS namespace,
    COALESCE((input ->> 'version'::text), '0.1.0'::text) AS version,
    COALESCE((input -> 'context'::text), '{}'::jsonb) AS context,
    state,
    (state = ANY (ARRAY['complete'::text, 'resolved_manually'::text])) AS complete,
    ARRAY( SELECT t.tag
           FROM jsonb_array_elements_text(COALESCE((r.input -> 'tags'::text), '[]'::jsonb)) t(tag)) AS tags,
    (input ->> 'initiator'::text) AS initiator,
    (input ->> 'source_system'::text) AS source_system,
    (input ->> 'reason'::text) AS reason,
    ARRAY( SELECT b.name
           FROM jsonb_array_elements_text(COALESCE((r.input -> 'skip'::text), '[]'::jsonb)) b(name)) AS bypass_steps,
    of_run AS retry_of,
    created_at AS requested_at,
    started_at,
    finished_at,
    total AS total_steps,
    live AS active_steps,
    ((((total - live) - succeeded) - failed) - cancelled) AS waiting_steps,
    succeeded AS completed_steps,
    failed AS failed_steps,
    cancelled AS cancelled_steps,
    tenant
   FROM holdfast.runs r
  WHERE ((machine = 'flow.task'::text) AND COALESCE((tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true));


--
-- Name: resolutions; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.resolutions (
    step_id bigint NOT NULL,
    tenant text NOT NULL,
    resolved_at timestamp with time zone NOT NULL,
    actor text NOT NULL,
    login text,
    reason text
);

ALTER TABLE ONLY holdfast.resolutions FORCE ROW LEVEL SECURITY;


--
-- Name: dead_steps; Type: VIEW; Schema: holdfast; Owner: -
--

CREATE VIEW holdfast.dead_steps WITH (security_invoker='true') AS
 SELECT s.id,
    s.kind,
    s.queue,
    s.state,
    s.tenant,
    s.machine,
    s.run_id,
    s.attempt,
    s.failures,
    s.finished_at,
    s.error,
    s.input
   FROM (holdfast.steps s
     JOIN holdfast.machine_states t ON (((t.machine = s.machine) AND (t.state = s.state))))
  WHERE ((s.finished_at IS NOT NULL) AND (t.outcome = 'failed'::text) AND (s.last_event <> ALL (ARRAY['succeeded'::text, 'cancelled'::text, 'resolved'::text, 'rolled_back'::text])) AND (NOT (EXISTS ( SELECT
           FROM holdfast.resolutions r
          WHERE ((r.step_id = s.id) AND (r.resolved_at >= s.finished_at))))) AND COALESCE((s.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true));


--
-- Name: faces; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.faces (
    face text NOT NULL,
    starts text,
    is_open text,
    cancels text,
    prunes text
);


--
-- Name: installed; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.installed (
    part text NOT NULL,
    digest text NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);


--
-- Name: keys; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.keys (
    tenant text NOT NULL,
    key text NOT NULL,
    id text NOT NULL,
    input_hash bytea NOT NULL,
    expires_at timestamp with time zone
)
WITH (autovacuum_vacuum_scale_factor='0.05');

ALTER TABLE ONLY holdfast.keys FORCE ROW LEVEL SECURITY;


--
-- Name: lease_ids; Type: SEQUENCE; Schema: holdfast; Owner: -
--

CREATE SEQUENCE holdfast.lease_ids
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: limit_list; Type: VIEW; Schema: holdfast; Owner: -
--

CREATE VIEW holdfast.limit_list WITH (security_invoker='true') AS
 WITH states AS (
         SELECT n.id,
            n.held,
            n.parked,
            n.tokens,
            n.filled_at,
            n.bucket_at,
            n.wake_at,
            n.paused_until,
            n.failures,
            n.open_until,
            n.open_for,
            n.probe_id,
            n.name,
            n.tenant,
            n.paused_by,
            n.pause_reason
           FROM holdfast.limit_states n
          WHERE COALESCE(((n.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])) OR ((n.tenant = '*'::text) AND (EXISTS ( SELECT
                   FROM holdfast.steps p_1
                  WHERE ((p_1.limited_by = n.id) AND (COALESCE(p_1.parked_for, ''::text) = 'limit'::text) AND (p_1.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))))))), true)
        )
 SELECT l.name,
    l.tenant,
    r.name AS rule,
    r.concurrency,
    r.rate,
    r.per,
    r.burst,
    r.breaker_after,
    r.breaker_for,
    r.breaker_counts,
    COALESCE(s.held, f.held, 0) AS held,
        CASE
            WHEN (s.id IS NOT NULL) THEN holdfast.tokens_at(s.state, r.*, c.clock)
            WHEN (l.name !~~ '%:*'::text) THEN r.burst
            ELSE NULL::numeric
        END AS tokens,
    COALESCE(s.parked, f.parked, 0) AS parked,
        CASE
            WHEN (s.parked > 0) THEN ( SELECT min(p_1.parked_due_at) AS min
               FROM holdfast.steps p_1
              WHERE ((p_1.limited_by = s.id) AND (COALESCE(p_1.parked_for, ''::text) = 'limit'::text)))
            ELSE NULL::timestamp with time zone
        END AS oldest_parked_at,
    COALESCE(s.wake_at, f.wake_at) AS wake_at,
    NULLIF(
        CASE
            WHEN p.is_paused THEN GREATEST(s.paused_until, r.paused_until)
            ELSE NULL::timestamp with time zone
        END, 'infinity'::timestamp with time zone) AS paused_until,
        CASE
            WHEN p.is_paused THEN COALESCE(s.paused_by, r.paused_by)
            ELSE NULL::text
        END AS paused_by,
        CASE
            WHEN p.is_paused THEN COALESCE(s.pause_reason, r.pause_reason)
            ELSE NULL::text
        END AS reason,
        CASE
            WHEN (r.breaker_after IS NULL) THEN NULL::text
            WHEN (s.open_until IS NULL) THEN 'closed'::text
            WHEN (s.open_until > c.clock) THEN 'open'::text
            ELSE 'half-open'::text
        END AS breaker,
    s.open_until,
    COALESCE(s.failures, 0) AS failures_in_a_row
   FROM (((((( SELECT n.name,
            n.tenant
           FROM holdfast.limits n
        UNION
         SELECT n.name,
            n.tenant
           FROM states n) l
     CROSS JOIN ( SELECT holdfast.clock() AS clock) c)
     LEFT JOIN LATERAL ( SELECT h.*::holdfast.limit_states AS state,
            n.id,
            n.held,
            n.parked,
            n.tokens,
            n.filled_at,
            n.bucket_at,
            n.wake_at,
            n.paused_until,
            n.failures,
            n.open_until,
            n.open_for,
            n.probe_id,
            n.name,
            n.tenant,
            n.paused_by,
            n.pause_reason
           FROM (states n
             JOIN holdfast.limit_states h ON ((h.id = n.id)))
          WHERE ((n.name = l.name) AND (n.tenant = l.tenant))) s ON (true))
     LEFT JOIN LATERAL holdfast.limit_rule(l.name, l.tenant) r(name, tenant, concurrency, rate, per, burst, breaker_after, breaker_for, breaker_counts, paused_until, paused_by, pause_reason, defined_at) ON (true))
     LEFT JOIN LATERAL ( SELECT (sum(v.held))::integer AS held,
            (sum(v.parked))::integer AS parked,
            min(v.wake_at) AS wake_at
           FROM states v
          WHERE ((l.name ~~ '%:*'::text) AND (v.tenant = l.tenant) AND (holdfast.limit_family(v.name) = l.name) AND (NOT (EXISTS ( SELECT
                   FROM holdfast.limits o
                  WHERE ((o.name = v.name) AND (o.tenant = v.tenant))))))) f ON (true))
     CROSS JOIN LATERAL ( SELECT COALESCE((GREATEST(s.paused_until, r.paused_until) > c.clock), false) AS is_paused) p)
  WHERE COALESCE(((l.tenant = '*'::text) OR (l.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))), true);


--
-- Name: limit_states_id_seq; Type: SEQUENCE; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.limit_states ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME holdfast.limit_states_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: machine_moves; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.machine_moves (
    machine text NOT NULL,
    from_state text NOT NULL,
    event text NOT NULL,
    to_state text NOT NULL,
    actors text[] NOT NULL,
    CONSTRAINT known_actors CHECK (((actors <@ ARRAY['worker'::text, 'api'::text, 'user'::text, 'scheduler'::text, 'system'::text]) AND (actors <> '{}'::text[]))),
    CONSTRAINT known_event CHECK ((event = ANY (ARRAY['queued'::text, 'claimed'::text, 'started'::text, 'succeeded'::text, 'retried'::text, 'failed'::text, 'snoozed'::text, 'released'::text, 'continued'::text, 'expired'::text, 'reopened'::text, 'resolved'::text, 'cancelled'::text, 'rolled_back'::text, 'all_succeeded'::text, 'some_failed'::text, 'none_succeeded'::text, 'blocked'::text, 'stopped'::text])))
);


--
-- Name: migrations; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.migrations (
    number integer NOT NULL,
    name text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);


--
-- Name: prunings_id_seq; Type: SEQUENCE; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.prunings ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME holdfast.prunings_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: queues; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.queues (
    queue text NOT NULL,
    top_priority smallint DEFAULT 0 NOT NULL,
    paused_at timestamp with time zone,
    paused_by text,
    pause_reason text,
    created_at timestamp with time zone NOT NULL
);


--
-- Name: queue_list; Type: VIEW; Schema: holdfast; Owner: -
--

CREATE VIEW holdfast.queue_list WITH (security_invoker='true') AS
 SELECT q.queue,
    q.paused_at,
    q.paused_by,
    q.pause_reason,
    d.due,
    d.later,
    d.oldest_due_at,
    p.parked,
    holdfast.live_workers(q.queue) AS live_workers
   FROM holdfast.queues q,
    LATERAL ( SELECT count(*) FILTER (WHERE (s.due_at <= holdfast.clock())) AS due,
            count(*) FILTER (WHERE (s.due_at > holdfast.clock())) AS later,
            min(s.due_at) AS oldest_due_at
           FROM holdfast.steps s
          WHERE ((s.queue = q.queue) AND (s.due_at IS NOT NULL) AND COALESCE((s.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true))) d,
    LATERAL ( SELECT count(*) AS parked
           FROM ( SELECT
                   FROM holdfast.steps s
                  WHERE ((s.queue = q.queue) AND (s.parked_for IS NOT NULL) AND COALESCE((s.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true))
                 LIMIT 10001) n) p;


--
-- Name: queue_pauses; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.queue_pauses (
    id bigint DEFAULT nextval('holdfast.stream_ids'::regclass) NOT NULL,
    at timestamp with time zone NOT NULL,
    queue text NOT NULL,
    event text NOT NULL,
    actor text NOT NULL,
    login text,
    reason text,
    CONSTRAINT known_pause_event CHECK ((event = ANY (ARRAY['paused'::text, 'resumed'::text])))
);


--
-- Name: reserved_ids; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.reserved_ids (
    login text NOT NULL,
    first_id bigint NOT NULL,
    last_id bigint NOT NULL,
    reserved_at timestamp with time zone NOT NULL
);


--
-- Name: retention_changes; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.retention_changes (
    id bigint DEFAULT nextval('holdfast.stream_ids'::regclass) NOT NULL,
    at timestamp with time zone NOT NULL,
    what text NOT NULL,
    tenant text NOT NULL,
    machine text,
    queue text,
    outcome text,
    event text NOT NULL,
    keep interval,
    kept interval,
    actor text NOT NULL,
    login text,
    reason text,
    CONSTRAINT known_retention_event CHECK ((event = ANY (ARRAY['set'::text, 'removed'::text])))
);

ALTER TABLE ONLY holdfast.retention_changes FORCE ROW LEVEL SECURITY;


--
-- Name: retention_list; Type: VIEW; Schema: holdfast; Owner: -
--

CREATE VIEW holdfast.retention_list WITH (security_invoker='true') AS
 SELECT what,
    tenant,
    machine,
    queue,
    outcome,
    keep,
    holdfast.rule_text(r.*) AS rule,
    set_at,
    is_default
   FROM holdfast.retention_rules r
  WHERE (((tenant = '*'::text) OR COALESCE((tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true)) AND (NOT (is_default AND (EXISTS ( SELECT
           FROM holdfast.retention_rules o
          WHERE ((o.what = r.what) AND (NOT o.is_default) AND (o.tenant = '*'::text) AND (num_nonnulls(o.machine, o.queue) = 0) AND COALESCE((o.outcome = r.outcome), true)))))));


--
-- Name: role_tenants; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.role_tenants (
    role_name text NOT NULL,
    tenant text NOT NULL
);


--
-- Name: run_list; Type: VIEW; Schema: holdfast; Owner: -
--

CREATE VIEW holdfast.run_list WITH (security_invoker='true') AS
 SELECT r.id,
    r.name,
    r.machine,
    r.state,
    r.tenant,
    r.total,
    r.live,
    r.succeeded,
    r.failed,
    r.cancelled,
    ((((r.total - r.live) - r.succeeded) - r.failed) - r.cancelled) AS waiting,
    r.created_at,
    r.started_at,
    r.finished_at,
    r.of_run,
    r.moving,
        CASE
            WHEN (r.finished_at IS NOT NULL) THEN 'over'::text
            WHEN (t.phase = 'open_or_over'::text) THEN 'open'::text
            ELSE t.phase
        END AS phase,
        CASE
            WHEN (r.finished_at IS NOT NULL) THEN t.outcome
            ELSE NULL::text
        END AS outcome,
    ( SELECT m.label
           FROM holdfast.machines m
          WHERE (m.machine = r.machine)) AS label
   FROM (holdfast.runs r
     LEFT JOIN holdfast.machine_states t ON (((t.machine = r.machine) AND (t.state = r.state))))
  WHERE COALESCE((r.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true);


--
-- Name: schedule_changes; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.schedule_changes (
    id bigint DEFAULT nextval('holdfast.stream_ids'::regclass) NOT NULL,
    at timestamp with time zone NOT NULL,
    tenant text NOT NULL,
    name text NOT NULL,
    event text NOT NULL,
    actor_kind text NOT NULL,
    actor text NOT NULL,
    login text,
    reason text,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT known_schedule_event CHECK ((event = ANY (ARRAY['defined'::text, 'forgotten'::text, 'paused'::text, 'resumed'::text, 'run'::text, 'backfilled'::text, 'broken'::text, 'ended'::text])))
);

ALTER TABLE ONLY holdfast.schedule_changes FORCE ROW LEVEL SECURITY;


--
-- Name: schedule_list; Type: VIEW; Schema: holdfast; Owner: -
--

CREATE VIEW holdfast.schedule_list WITH (security_invoker='true') AS
 SELECT s.name,
    s.tenant,
    s.face,
    s.target,
        CASE
            WHEN (s.broken IS NOT NULL) THEN 'broken'::text
            WHEN (s.ended_at IS NOT NULL) THEN 'ended'::text
            WHEN (s.paused_at IS NOT NULL) THEN 'paused'::text
            WHEN (s.next_at IS NULL) THEN 'new'::text
            ELSE 'active'::text
        END AS state,
    (
        CASE
            WHEN (s.at IS NOT NULL) THEN ('once at '::text || to_char((s.at AT TIME ZONE s.timezone), 'YYYY-MM-DD HH24:MI:SS'::text))
            WHEN (s.every IS NOT NULL) THEN ('every '::text || ( SELECT string_agg((((p.count || ' '::text) || p.unit) ||
                    CASE
                        WHEN (p.count = (1)::numeric) THEN ''::text
                        ELSE 's'::text
                    END), ' '::text ORDER BY p.n) AS string_agg
               FROM ( VALUES (1,floor((EXTRACT(epoch FROM s.every) / (86400)::numeric)),'day'::text), (2,floor((mod(EXTRACT(epoch FROM s.every), (86400)::numeric) / (3600)::numeric)),'hour'::text), (3,floor((mod(EXTRACT(epoch FROM s.every), (3600)::numeric) / (60)::numeric)),'minute'::text), (4,trim_scale(mod(EXTRACT(epoch FROM s.every), (60)::numeric)),'second'::text)) p(n, count, unit)
              WHERE (p.count > (0)::numeric)))
            ELSE COALESCE(s.words, ('cron '::text || s.cron))
        END ||
        CASE
            WHEN (s.every IS NULL) THEN (', '::text || s.timezone)
            ELSE ''::text
        END) AS words,
        CASE
            WHEN (s.paused_at IS NULL) THEN s.next_at
            ELSE NULL::timestamp with time zone
        END AS next_at,
    ARRAY( SELECT (u.at + s.shift)
           FROM unnest(s.upcoming[1:5]) WITH ORDINALITY u(at, n)
          WHERE ((s.paused_at IS NULL) AND (s.broken IS NULL))
          ORDER BY u.n) AS next_ticks,
    l.at AS last_at,
    l.fired_at AS last_fired_at,
    l.outcome AS last_outcome,
    l.ids AS last_ids,
    holdfast.error_text(l.error) AS last_error,
    s.cron,
    s.every,
    s.at,
    s.timezone,
    s.starts_at,
    s.ends_at,
    s.missed,
    s.missed_window,
    s.overlap,
    s.spread,
    s.shift,
    s.input,
    s.options,
    s.paused_at,
    s.paused_by,
    s.pause_reason,
    s.broken,
    s.ended_at,
    s.defined_at
   FROM (holdfast.schedules s
     LEFT JOIN LATERAL ( SELECT t.at,
            t.fired_at,
            t.outcome,
            t.ids,
            t.error
           FROM holdfast.ticks t
          WHERE ((t.tenant = s.tenant) AND (t.name = s.name))
          ORDER BY t.at DESC
         LIMIT 1) l ON (true))
  WHERE COALESCE((s.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true);


--
-- Name: schedule_ticks; Type: VIEW; Schema: holdfast; Owner: -
--

CREATE VIEW holdfast.schedule_ticks WITH (security_invoker='true') AS
 SELECT name,
    tenant,
    at AS tick_at,
    due_at,
    fired_at,
    cause,
    outcome,
    face,
    ids,
    cancelled,
    holdfast.error_text(error) AS error,
    (error ->> 'next'::text) AS next,
    ticks,
    until_at,
    actor
   FROM holdfast.ticks t
  WHERE COALESCE((tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true);


--
-- Name: schedules_id_seq; Type: SEQUENCE; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.schedules ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME holdfast.schedules_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: step_list; Type: VIEW; Schema: holdfast; Owner: -
--

CREATE VIEW holdfast.step_list WITH (security_invoker='true') AS
 SELECT s.id,
    s.kind,
    s.queue,
    s.state,
    s.tenant,
    s.machine,
    s.run_id,
    s.priority,
    s.attempt,
    s.failures,
        CASE
            WHEN (s.finished_at IS NOT NULL) THEN 'over'::text
            WHEN (s.parked_for = 'handler'::text) THEN 'no handler'::text
            WHEN (s.parked_for = 'move'::text) THEN 'no move'::text
            WHEN ((s.parked_for = 'limit'::text) AND (l.open_until IS NOT NULL)) THEN 'breaker open'::text
            WHEN ((s.parked_for = 'limit'::text) AND l.is_paused) THEN 'upstream paused'::text
            WHEN (s.parked_for = 'limit'::text) THEN 'limited'::text
            WHEN (s.parked_for IS NOT NULL) THEN 'parked'::text
            WHEN (s.lease_id IS NOT NULL) THEN 'held'::text
            WHEN (s.waits > 0) THEN 'waiting'::text
            WHEN (s.due_at > holdfast.clock()) THEN 'later'::text
            WHEN (s.due_at IS NOT NULL) THEN 'due'::text
            ELSE 'not admitted'::text
        END AS standing,
    COALESCE(s.due_at, s.parked_due_at) AS due_at,
    s.waits,
    s.lease_owner,
    s.lease_until,
    s.created_at,
    s.claimed_at,
    s.finished_at,
    s.input,
    s.cursor,
    s.result,
    s.error,
        CASE
            WHEN (s.finished_at IS NOT NULL) THEN 'over'::text
            WHEN (t.phase = 'open_or_over'::text) THEN 'open'::text
            ELSE t.phase
        END AS phase,
        CASE
            WHEN (s.finished_at IS NOT NULL) THEN t.outcome
            ELSE NULL::text
        END AS outcome,
    s.parked_for,
    ( SELECT m.label
           FROM holdfast.machines m
          WHERE (m.machine = s.machine)) AS label,
    l.name AS limited_by,
    l.until AS limited_until
   FROM ((holdfast.steps s
     LEFT JOIN holdfast.machine_states t ON (((t.machine = s.machine) AND (t.state = s.state))))
     LEFT JOIN LATERAL ( SELECT h.name,
            h.open_until,
            (p.until > holdfast.clock()) AS is_paused,
            NULLIF(COALESCE(h.open_until,
                CASE
                    WHEN (p.until > holdfast.clock()) THEN p.until
                    ELSE NULL::timestamp with time zone
                END, h.wake_at), 'infinity'::timestamp with time zone) AS until
           FROM ((holdfast.limit_states h
             LEFT JOIN LATERAL holdfast.limit_rule(h.name, h.tenant) r(name, tenant, concurrency, rate, per, burst, breaker_after, breaker_for, breaker_counts, paused_until, paused_by, pause_reason, defined_at) ON (true))
             CROSS JOIN LATERAL ( SELECT GREATEST(h.paused_until, r.paused_until) AS until) p)
          WHERE ((s.parked_for = 'limit'::text) AND (h.id = s.limited_by))) l ON (true))
  WHERE COALESCE((s.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true);


--
-- Name: step_story; Type: VIEW; Schema: holdfast; Owner: -
--

CREATE VIEW holdfast.step_story WITH (security_invoker='true') AS
 SELECT j.step_id,
    j.id,
    j.at,
    j.attempt,
    'move'::text AS entry,
    j.event AS what,
    j.from_state,
    j.to_state,
    j.actor_kind,
    j.actor,
    j.reason AS said,
    j.error AS payload,
    j.login
   FROM holdfast.journal j
  WHERE ((j.step_id IS NOT NULL) AND COALESCE((j.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true))
UNION ALL
 SELECT n.step_id,
    n.id,
    n.at,
    n.attempt,
    'note'::text AS entry,
    n.level AS what,
    NULL::text AS from_state,
    NULL::text AS to_state,
    NULL::text AS actor_kind,
    NULL::text AS actor,
    n.message AS said,
    n.payload,
    NULL::text AS login
   FROM holdfast.notes n
  WHERE COALESCE((n.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true);


--
-- Name: workers; Type: TABLE; Schema: holdfast; Owner: -
--

CREATE TABLE holdfast.workers (
    worker text NOT NULL,
    queue text NOT NULL,
    kinds text[],
    tenants text[],
    is_asleep boolean DEFAULT false NOT NULL,
    started_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    state text,
    about jsonb DEFAULT '{}'::jsonb NOT NULL,
    machine text,
    CONSTRAINT known_worker_state CHECK ((state = ANY (ARRAY['startup'::text, 'connecting'::text, 'recovery'::text, 'polling'::text, 'claiming'::text, 'processing'::text, 'reporting_success'::text, 'reporting_failure'::text, 'backoff'::text, 'idle'::text, 'error_wait'::text, 'draining'::text, 'stopped'::text])))
);

ALTER TABLE ONLY holdfast.workers FORCE ROW LEVEL SECURITY;


--
-- Name: worker_list; Type: VIEW; Schema: holdfast; Owner: -
--

CREATE VIEW holdfast.worker_list WITH (security_invoker='true') AS
 SELECT w.worker,
    w.queues,
        CASE
            WHEN (NOT w.takes_any_kind) THEN ARRAY( SELECT DISTINCT u.kind
               FROM holdfast.workers o,
                LATERAL unnest(o.kinds) u(kind)
              WHERE ((o.worker = w.worker) AND holdfast.is_own_worker(o.tenants, ( SELECT holdfast.allowed_tenants() AS allowed_tenants)))
              ORDER BY u.kind)
            ELSE NULL::text[]
        END AS kinds,
        CASE
            WHEN (NOT w.takes_any_tenant) THEN ARRAY( SELECT DISTINCT u.tenant
               FROM holdfast.workers o,
                LATERAL unnest(o.tenants) u(tenant)
              WHERE ((o.worker = w.worker) AND holdfast.is_own_worker(o.tenants, ( SELECT holdfast.allowed_tenants() AS allowed_tenants)))
              ORDER BY u.tenant)
            ELSE NULL::text[]
        END AS tenants,
        CASE
            WHEN ((h.held > 0) AND (w.state = ANY (ARRAY['connecting'::text, 'recovery'::text, 'polling'::text, 'idle'::text]))) THEN 'processing'::text
            ELSE w.state
        END AS state,
    holdfast.worker_standing(w.seen_at, ( SELECT holdfast.clock() AS clock)) AS standing,
    w.is_asleep,
    COALESCE(h.held, (0)::bigint) AS held,
    h.oldest_claimed_at,
    w.started_at,
    w.seen_at,
    w.about
   FROM (( SELECT o.worker,
            array_agg(o.queue ORDER BY o.queue) AS queues,
            bool_or((o.kinds IS NULL)) AS takes_any_kind,
            bool_or((o.tenants IS NULL)) AS takes_any_tenant,
            (array_agg(o.state ORDER BY o.seen_at DESC) FILTER (WHERE (o.state IS NOT NULL)))[1] AS state,
            (array_agg(o.about ORDER BY (o.about = '{}'::jsonb), o.seen_at DESC))[1] AS about,
            bool_and(o.is_asleep) AS is_asleep,
            min(o.started_at) AS started_at,
            max(o.seen_at) AS seen_at
           FROM holdfast.workers o
          WHERE holdfast.is_own_worker(o.tenants, ( SELECT holdfast.allowed_tenants() AS allowed_tenants))
          GROUP BY o.worker) w
     LEFT JOIN ( SELECT s.lease_owner,
            count(*) AS held,
            min(s.claimed_at) AS oldest_claimed_at
           FROM holdfast.steps s
          WHERE ((s.lease_until IS NOT NULL) AND COALESCE((s.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true))
          GROUP BY s.lease_owner) h ON ((h.lease_owner = w.worker)));


--
-- Name: approvals; Type: VIEW; Schema: ops; Owner: -
--

CREATE VIEW ops.approvals WITH (security_invoker='true') AS
 SELECT f.run_id,
    COALESCE(a.decision, 'pending'::text) AS decision,
    f.project_id,
    f.env_id,
    f.env,
    f.kind,
    f.git_sha,
    f.git_ref,
    a.requested_by,
    a.requested_at,
    a.expires_at,
    a.decided_by,
    a.decided_at,
    a.reason,
    a.login,
    a.tenant
   FROM (ops.run_approvals a
     JOIN ops.run_facts f ON ((f.step_id = a.step_id)))
  WHERE COALESCE((a.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true);


--
-- Name: artifacts; Type: VIEW; Schema: ops; Owner: -
--

CREATE VIEW ops.artifacts WITH (security_invoker='true') AS
 SELECT a.artifact_id,
    f.run_id,
    a.type,
    a.url,
    a.digest,
    a.size_bytes,
    a.metadata,
    a.created_at,
    f.project_id,
    f.env_id,
    a.tenant
   FROM (ops.run_artifacts a
     JOIN ops.run_facts f ON ((f.step_id = a.step_id)))
  WHERE COALESCE((a.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true);


--
-- Name: deliveries; Type: TABLE; Schema: ops; Owner: -
--

CREATE TABLE ops.deliveries (
    tenant text NOT NULL,
    source text NOT NULL,
    delivery text NOT NULL,
    event text NOT NULL,
    repository text,
    git_ref text,
    git_sha text,
    outcome text NOT NULL,
    run_ids text[] DEFAULT '{}'::text[] NOT NULL,
    received_at timestamp with time zone NOT NULL
);

ALTER TABLE ONLY ops.deliveries FORCE ROW LEVEL SECURITY;


--
-- Name: environments; Type: VIEW; Schema: ops; Owner: -
--

CREATE VIEW ops.environments WITH (security_invoker='true') AS
 SELECT env_id,
    project_id,
    name,
    type,
    branch_pattern,
    needs_approval,
    on_push,
    kind,
    concurrency,
    queue_ttl,
    tenant,
    created_at,
    created_by
   FROM ops.known_environments e
  WHERE COALESCE((tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true);


--
-- Name: event_list; Type: VIEW; Schema: ops; Owner: -
--

CREATE VIEW ops.event_list WITH (security_invoker='true') AS
 SELECT n.id,
    n.step_id,
    ('evt-'::text || lpad((n.id)::text, 19, '0'::text)) AS event_id,
    f.run_id,
    n.level,
    n.message,
    n.payload,
    n.at AS created_at
   FROM (ops.run_facts f
     JOIN holdfast.notes n ON ((n.step_id = f.step_id)))
  WHERE COALESCE((f.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true)
UNION ALL
 SELECT j.id,
    j.step_id,
    ('evt-'::text || lpad((j.id)::text, 19, '0'::text)) AS event_id,
    f.run_id,
        CASE j.to_state
            WHEN 'failed'::text THEN 'error'::text
            WHEN 'cancelled'::text THEN 'warn'::text
            ELSE 'info'::text
        END AS level,
        CASE
            WHEN (j.event = 'created'::text) THEN 'Run queued'::text
            WHEN (j.event = 'claimed'::text) THEN 'Run claimed by worker'::text
            WHEN (j.event = 'started'::text) THEN 'Run started'::text
            WHEN (j.to_state = ANY (ARRAY['success'::text, 'failed'::text, 'cancelled'::text])) THEN ('Run finished: '::text || j.to_state)
            ELSE format('Run moved by hand: %s'::text, j.to_state)
        END AS message,
        CASE
            WHEN (j.event = 'claimed'::text) THEN jsonb_build_object('worker_id', j.actor)
            ELSE jsonb_strip_nulls(jsonb_build_object('from', NULLIF(j.from_state, 'new'::text), 'to', j.to_state, 'event', j.event, 'actor_kind', j.actor_kind, 'actor', j.actor, 'login', j.login, 'error', j.error, 'reason', COALESCE(j.reason,
            CASE
                WHEN (j.event = 'expired'::text) THEN (f.metadata ->> 'reason'::text)
                ELSE NULL::text
            END)))
        END AS payload,
    j.at AS created_at
   FROM (ops.run_facts f
     JOIN holdfast.journal j ON ((j.step_id = f.step_id)))
  WHERE COALESCE((f.tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true);


--
-- Name: known_projects; Type: TABLE; Schema: ops; Owner: -
--

CREATE TABLE ops.known_projects (
    tenant text NOT NULL,
    project_id text NOT NULL,
    repository text,
    created_at timestamp with time zone NOT NULL,
    created_by text NOT NULL
);

ALTER TABLE ONLY ops.known_projects FORCE ROW LEVEL SECURITY;


--
-- Name: projects; Type: VIEW; Schema: ops; Owner: -
--

CREATE VIEW ops.projects WITH (security_invoker='true') AS
 SELECT project_id,
    repository,
    tenant,
    created_at,
    created_by,
    ( SELECT count(*) AS count
           FROM ops.known_environments e
          WHERE ((e.tenant = p.tenant) AND (e.project_id = p.project_id))) AS environments
   FROM ops.known_projects p
  WHERE COALESCE((tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true);


--
-- Name: queue_depth; Type: VIEW; Schema: ops; Owner: -
--

CREATE VIEW ops.queue_depth WITH (security_invoker='true') AS
 SELECT count(*) AS queued_count
   FROM ops.run_facts f
  WHERE ((status = 'queued'::text) AND COALESCE((tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true));


--
-- Name: run_durations; Type: VIEW; Schema: ops; Owner: -
--

CREATE VIEW ops.run_durations WITH (security_invoker='true') AS
 SELECT status,
    avg(EXTRACT(epoch FROM (finished_at - started_at))) AS avg_duration_seconds
   FROM ops.run_facts f
  WHERE ((finished_at IS NOT NULL) AND (queued_at > (( SELECT holdfast.clock() AS clock) - '7 days'::interval)) AND COALESCE((tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true))
  GROUP BY status;


--
-- Name: run_events; Type: VIEW; Schema: ops; Owner: -
--

CREATE VIEW ops.run_events WITH (security_invoker='true') AS
 SELECT event_id,
    run_id,
    level,
    message,
    payload,
    created_at
   FROM ops.event_list e;


--
-- Name: run_list; Type: VIEW; Schema: ops; Owner: -
--

CREATE VIEW ops.run_list WITH (security_invoker='true') AS
 SELECT run_id,
    step_id,
    project_id,
    env,
    env_id,
    kind,
    status,
    git_sha,
    git_ref,
    queued_by,
    claimed_by,
    queued_at,
    started_at,
    running_at,
    finished_at,
    expires_at,
    retry_of,
    rollback_of,
    idempotency_key,
    (metadata)::text AS metadata,
    tenant,
    ( SELECT COALESCE(a.decision, 'pending'::text) AS "coalesce"
           FROM ops.run_approvals a
          WHERE (a.step_id = f.step_id)) AS approval
   FROM ops.run_facts f
  WHERE ((step_id IS NOT NULL) AND COALESCE((tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true));


--
-- Name: runs; Type: VIEW; Schema: ops; Owner: -
--

CREATE VIEW ops.runs WITH (security_invoker='true') AS
 SELECT run_id,
    project_id,
    env_id,
    git_sha,
    git_ref,
    status,
    claimed_by,
    queued_at,
    started_at,
    finished_at,
    queued_at AS created_at,
    updated_at,
    metadata,
    idempotency_key,
    running_at,
    kind,
    tenant,
    retry_of,
    rollback_of,
    env,
    queued_by,
    expires_at,
    step_id
   FROM ops.run_facts f
  WHERE COALESCE((tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true);


--
-- Name: settings; Type: TABLE; Schema: ops; Owner: -
--

CREATE TABLE ops.settings (
    tenant text NOT NULL,
    strict_projects boolean DEFAULT false NOT NULL
);

ALTER TABLE ONLY ops.settings FORCE ROW LEVEL SECURITY;


--
-- Name: success_rate; Type: VIEW; Schema: ops; Owner: -
--

CREATE VIEW ops.success_rate WITH (security_invoker='true') AS
 SELECT count(*) FILTER (WHERE (status = 'success'::text)) AS success_count,
    count(*) FILTER (WHERE (status = 'failed'::text)) AS failed_count,
    round(((100.0 * (count(*) FILTER (WHERE (status = 'success'::text)))::numeric) / (NULLIF(count(*), 0))::numeric), 2) AS success_rate
   FROM ops.run_facts f
  WHERE ((status = ANY (ARRAY['success'::text, 'failed'::text])) AND (queued_at > (( SELECT holdfast.clock() AS clock) - '24:00:00'::interval)) AND COALESCE((tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true));


--
-- Name: webhook_deliveries; Type: VIEW; Schema: ops; Owner: -
--

CREATE VIEW ops.webhook_deliveries WITH (security_invoker='true') AS
 SELECT source,
    delivery,
    event,
    repository,
    git_ref,
    git_sha,
    outcome,
    run_ids,
    received_at,
    tenant
   FROM ops.deliveries d
  WHERE COALESCE((tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true);


--
-- Name: worker_utilization; Type: VIEW; Schema: ops; Owner: -
--

CREATE VIEW ops.worker_utilization WITH (security_invoker='true') AS
 SELECT claimed_by,
    count(*) AS active_runs
   FROM ops.run_facts f
  WHERE ((status = ANY (ARRAY['claimed'::text, 'running'::text])) AND COALESCE((tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true))
  GROUP BY claimed_by;


--
-- Name: audit_logs; Type: VIEW; Schema: work; Owner: -
--

CREATE VIEW work.audit_logs WITH (security_invoker='true') AS
 SELECT id,
    event AS event_type,
    step_id AS resource_id,
    at AS created_at,
    actor,
    actor_kind,
    tenant,
    jsonb_strip_nulls(jsonb_build_object('from_status', from_state, 'to_status', to_state, 'try_count', attempt, 'lease_id', lease_id, 'reason', reason, 'error', error, 'login', login)) AS metadata
   FROM holdfast.journal j
  WHERE ((machine = 'work.task'::text) AND (step_id IS NOT NULL) AND COALESCE((tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])), true));


--
-- Name: definitions definitions_pkey; Type: CONSTRAINT; Schema: flow; Owner: -
--

ALTER TABLE ONLY flow.definitions
    ADD CONSTRAINT definitions_pkey PRIMARY KEY (namespace, name, version, tenant);


--
-- Name: edges edges_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.edges
    ADD CONSTRAINT edges_pkey PRIMARY KEY (step_id, next_id);


--
-- Name: faces faces_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.faces
    ADD CONSTRAINT faces_pkey PRIMARY KEY (face);


--
-- Name: installed installed_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.installed
    ADD CONSTRAINT installed_pkey PRIMARY KEY (part);


--
-- Name: keys keys_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.keys
    ADD CONSTRAINT keys_pkey PRIMARY KEY (tenant, key);


--
-- Name: kinds kinds_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.kinds
    ADD CONSTRAINT kinds_pkey PRIMARY KEY (kind, tenant);


--
-- Name: limit_changes limit_changes_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.limit_changes
    ADD CONSTRAINT limit_changes_pkey PRIMARY KEY (id);


--
-- Name: limit_states limit_states_name_tenant_key; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.limit_states
    ADD CONSTRAINT limit_states_name_tenant_key UNIQUE (name, tenant);


--
-- Name: limit_states limit_states_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.limit_states
    ADD CONSTRAINT limit_states_pkey PRIMARY KEY (id);


--
-- Name: limits limits_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.limits
    ADD CONSTRAINT limits_pkey PRIMARY KEY (name, tenant);


--
-- Name: machine_moves machine_moves_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.machine_moves
    ADD CONSTRAINT machine_moves_pkey PRIMARY KEY (machine, from_state, event);


--
-- Name: machine_states machine_states_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.machine_states
    ADD CONSTRAINT machine_states_pkey PRIMARY KEY (machine, state);


--
-- Name: machines machines_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.machines
    ADD CONSTRAINT machines_pkey PRIMARY KEY (machine);


--
-- Name: migrations migrations_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (number);


--
-- Name: note_keys note_keys_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.note_keys
    ADD CONSTRAINT note_keys_pkey PRIMARY KEY (step_id, key);


--
-- Name: policies policies_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.policies
    ADD CONSTRAINT policies_pkey PRIMARY KEY (policy);


--
-- Name: prunings prunings_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.prunings
    ADD CONSTRAINT prunings_pkey PRIMARY KEY (id);


--
-- Name: queue_pauses queue_pauses_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.queue_pauses
    ADD CONSTRAINT queue_pauses_pkey PRIMARY KEY (id);


--
-- Name: queues queues_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.queues
    ADD CONSTRAINT queues_pkey PRIMARY KEY (queue);


--
-- Name: reserved_ids reserved_ids_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.reserved_ids
    ADD CONSTRAINT reserved_ids_pkey PRIMARY KEY (login, first_id);


--
-- Name: resolutions resolutions_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.resolutions
    ADD CONSTRAINT resolutions_pkey PRIMARY KEY (step_id);


--
-- Name: retention_changes retention_changes_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.retention_changes
    ADD CONSTRAINT retention_changes_pkey PRIMARY KEY (id);


--
-- Name: retention_rules retention_rules_what_tenant_machine_queue_outcome_is_defaul_key; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.retention_rules
    ADD CONSTRAINT retention_rules_what_tenant_machine_queue_outcome_is_defaul_key UNIQUE NULLS NOT DISTINCT (what, tenant, machine, queue, outcome, is_default);


--
-- Name: retention_sweep retention_sweep_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.retention_sweep
    ADD CONSTRAINT retention_sweep_pkey PRIMARY KEY (is_only);


--
-- Name: role_tenants role_tenants_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.role_tenants
    ADD CONSTRAINT role_tenants_pkey PRIMARY KEY (role_name, tenant);


--
-- Name: run_steps run_steps_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.run_steps
    ADD CONSTRAINT run_steps_pkey PRIMARY KEY (run_id, step_id);


--
-- Name: runs runs_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (id);


--
-- Name: schedule_changes schedule_changes_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.schedule_changes
    ADD CONSTRAINT schedule_changes_pkey PRIMARY KEY (id);


--
-- Name: schedules schedules_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.schedules
    ADD CONSTRAINT schedules_pkey PRIMARY KEY (id);


--
-- Name: schedules schedules_tenant_name_key; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.schedules
    ADD CONSTRAINT schedules_tenant_name_key UNIQUE (tenant, name);


--
-- Name: steps steps_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.steps
    ADD CONSTRAINT steps_pkey PRIMARY KEY (id) WITH (fillfactor='50');


--
-- Name: ticks ticks_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.ticks
    ADD CONSTRAINT ticks_pkey PRIMARY KEY (tenant, name, at);


--
-- Name: workers workers_pkey; Type: CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.workers
    ADD CONSTRAINT workers_pkey PRIMARY KEY (worker, queue);


--
-- Name: deliveries deliveries_pkey; Type: CONSTRAINT; Schema: ops; Owner: -
--

ALTER TABLE ONLY ops.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (tenant, source, delivery);


--
-- Name: known_environments known_environments_pkey; Type: CONSTRAINT; Schema: ops; Owner: -
--

ALTER TABLE ONLY ops.known_environments
    ADD CONSTRAINT known_environments_pkey PRIMARY KEY (env_id);


--
-- Name: known_environments known_environments_tenant_project_id_name_key; Type: CONSTRAINT; Schema: ops; Owner: -
--

ALTER TABLE ONLY ops.known_environments
    ADD CONSTRAINT known_environments_tenant_project_id_name_key UNIQUE (tenant, project_id, name);


--
-- Name: known_projects known_projects_pkey; Type: CONSTRAINT; Schema: ops; Owner: -
--

ALTER TABLE ONLY ops.known_projects
    ADD CONSTRAINT known_projects_pkey PRIMARY KEY (tenant, project_id);


--
-- Name: run_approvals run_approvals_pkey; Type: CONSTRAINT; Schema: ops; Owner: -
--

ALTER TABLE ONLY ops.run_approvals
    ADD CONSTRAINT run_approvals_pkey PRIMARY KEY (step_id);


--
-- Name: run_artifacts run_artifacts_pkey; Type: CONSTRAINT; Schema: ops; Owner: -
--

ALTER TABLE ONLY ops.run_artifacts
    ADD CONSTRAINT run_artifacts_pkey PRIMARY KEY (artifact_id);


--
-- Name: run_facts run_facts_pkey; Type: CONSTRAINT; Schema: ops; Owner: -
--

ALTER TABLE ONLY ops.run_facts
    ADD CONSTRAINT run_facts_pkey PRIMARY KEY (run_id);


--
-- Name: run_facts run_facts_step_id_key; Type: CONSTRAINT; Schema: ops; Owner: -
--

ALTER TABLE ONLY ops.run_facts
    ADD CONSTRAINT run_facts_step_id_key UNIQUE (step_id);


--
-- Name: settings settings_pkey; Type: CONSTRAINT; Schema: ops; Owner: -
--

ALTER TABLE ONLY ops.settings
    ADD CONSTRAINT settings_pkey PRIMARY KEY (tenant);


--
-- Name: changes_of_limit; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX changes_of_limit ON holdfast.limit_changes USING btree (name, tenant, id);


--
-- Name: changes_of_schedule; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX changes_of_schedule ON holdfast.schedule_changes USING btree (tenant, name, id);


--
-- Name: edges_back; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX edges_back ON holdfast.edges USING btree (next_id, step_id);


--
-- Name: journal_of_run; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX journal_of_run ON ONLY holdfast.journal USING btree (run_id, id) WHERE (step_id IS NULL);


--
-- Name: journal_of_step; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX journal_of_step ON ONLY holdfast.journal USING btree (step_id, id) WHERE (step_id IS NOT NULL);


--
-- Name: keys_expiring; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX keys_expiring ON holdfast.keys USING btree (expires_at) WHERE (expires_at IS NOT NULL);


--
-- Name: kinds_of_tenants; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX kinds_of_tenants ON holdfast.kinds USING btree (tenant) WHERE (tenant <> '*'::text);


--
-- Name: limit_wakes; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX limit_wakes ON holdfast.limit_states USING btree (wake_at) WHERE (wake_at IS NOT NULL);


--
-- Name: notes_of_step; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX notes_of_step ON ONLY holdfast.notes USING btree (step_id, id);


--
-- Name: pauses_of_queue; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX pauses_of_queue ON holdfast.queue_pauses USING btree (queue, id);


--
-- Name: prunings_by_age; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX prunings_by_age ON holdfast.prunings USING btree (at);


--
-- Name: prunings_of_ids; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX prunings_of_ids ON holdfast.prunings USING gist (span);


--
-- Name: run_step_names; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE UNIQUE INDEX run_step_names ON holdfast.run_steps USING btree (run_id, name) WHERE (name IS NOT NULL);


--
-- Name: runs_moving; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX runs_moving ON holdfast.runs USING btree (id) WHERE (moving IS NOT NULL);


--
-- Name: runs_of_run; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX runs_of_run ON holdfast.runs USING btree (of_run) WHERE (of_run IS NOT NULL);


--
-- Name: schedules_awake; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX schedules_awake ON holdfast.schedules USING btree (wake_at) WHERE (wake_at IS NOT NULL);


--
-- Name: steps_dead; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX steps_dead ON holdfast.steps USING btree (id) WHERE ((finished_at IS NOT NULL) AND (last_event <> ALL (ARRAY['succeeded'::text, 'cancelled'::text, 'resolved'::text, 'rolled_back'::text])));


--
-- Name: steps_due; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX steps_due ON holdfast.steps USING btree (queue, priority, due_at, id) WHERE (due_at IS NOT NULL);


--
-- Name: steps_held; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX steps_held ON holdfast.steps USING btree (lease_until) WHERE (lease_until IS NOT NULL);


--
-- Name: steps_limited; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX steps_limited ON holdfast.steps USING btree (limited_by, queue, priority DESC, parked_due_at, id) WHERE (limited_by IS NOT NULL);


--
-- Name: steps_open_key; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE UNIQUE INDEX steps_open_key ON holdfast.steps USING btree (tenant, unique_key) WHERE ((unique_key IS NOT NULL) AND (finished_at IS NULL));


--
-- Name: steps_parked; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX steps_parked ON holdfast.steps USING btree (queue, parked_for, kind, tenant) WHERE (parked_for IS NOT NULL);


--
-- Name: ticks_fired; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX ticks_fired ON holdfast.ticks USING btree (fired_at);


--
-- Name: ticks_started; Type: INDEX; Schema: holdfast; Owner: -
--

CREATE INDEX ticks_started ON holdfast.ticks USING btree (tenant, name, fired_at) WHERE (outcome = 'started'::text);


--
-- Name: approvals_to_expire; Type: INDEX; Schema: ops; Owner: -
--

CREATE INDEX approvals_to_expire ON ops.run_approvals USING btree (expires_at) WHERE (decision IS NULL);


--
-- Name: artifacts_of_run; Type: INDEX; Schema: ops; Owner: -
--

CREATE UNIQUE INDEX artifacts_of_run ON ops.run_artifacts USING btree (step_id, type, md5(url));


--
-- Name: deliveries_by_day; Type: INDEX; Schema: ops; Owner: -
--

CREATE INDEX deliveries_by_day ON ops.deliveries USING btree (received_at);


--
-- Name: projects_by_repository; Type: INDEX; Schema: ops; Owner: -
--

CREATE UNIQUE INDEX projects_by_repository ON ops.known_projects USING btree (tenant, lower(repository)) WHERE (repository IS NOT NULL);


--
-- Name: run_keys; Type: INDEX; Schema: ops; Owner: -
--

CREATE UNIQUE INDEX run_keys ON ops.run_facts USING btree (tenant, idempotency_key) WHERE (idempotency_key IS NOT NULL);


--
-- Name: runs_by_day; Type: INDEX; Schema: ops; Owner: -
--

CREATE INDEX runs_by_day ON ops.run_facts USING btree (queued_at);


--
-- Name: runs_by_status; Type: INDEX; Schema: ops; Owner: -
--

CREATE INDEX runs_by_status ON ops.run_facts USING btree (status, queued_at);


--
-- Name: runs_that_retry; Type: INDEX; Schema: ops; Owner: -
--

CREATE INDEX runs_that_retry ON ops.run_facts USING btree (retry_of) WHERE (retry_of IS NOT NULL);


--
-- Name: runs_that_roll_back; Type: INDEX; Schema: ops; Owner: -
--

CREATE INDEX runs_that_roll_back ON ops.run_facts USING btree (rollback_of) WHERE (rollback_of IS NOT NULL);


--
-- Name: runs_that_succeeded; Type: INDEX; Schema: ops; Owner: -
--

CREATE INDEX runs_that_succeeded ON ops.run_facts USING btree (env_id, step_id) WHERE (status = 'success'::text);


--
-- Name: runs_to_expire; Type: INDEX; Schema: ops; Owner: -
--

CREATE INDEX runs_to_expire ON ops.run_facts USING btree (expires_at) WHERE (((status || ''::text) = 'queued'::text) AND (expires_at IS NOT NULL));


--
-- Name: steps takes_adjustments; Type: TRIGGER; Schema: flow; Owner: -
--

CREATE TRIGGER takes_adjustments INSTEAD OF UPDATE ON flow.steps FOR EACH ROW EXECUTE FUNCTION flow.take_adjustment();


--
-- Name: steps takes_no_other_write; Type: TRIGGER; Schema: flow; Owner: -
--

CREATE TRIGGER takes_no_other_write INSTEAD OF INSERT OR DELETE ON flow.steps FOR EACH ROW EXECUTE FUNCTION flow.refuse_write();


--
-- Name: step_transitions takes_no_write; Type: TRIGGER; Schema: flow; Owner: -
--

CREATE TRIGGER takes_no_write INSTEAD OF INSERT OR DELETE OR UPDATE ON flow.step_transitions FOR EACH ROW EXECUTE FUNCTION flow.refuse_write();


--
-- Name: task_transitions takes_no_write; Type: TRIGGER; Schema: flow; Owner: -
--

CREATE TRIGGER takes_no_write INSTEAD OF INSERT OR DELETE OR UPDATE ON flow.task_transitions FOR EACH ROW EXECUTE FUNCTION flow.refuse_write();


--
-- Name: tasks takes_no_write; Type: TRIGGER; Schema: flow; Owner: -
--

CREATE TRIGGER takes_no_write INSTEAD OF INSERT OR DELETE OR UPDATE ON flow.tasks FOR EACH ROW EXECUTE FUNCTION flow.refuse_write();


--
-- Name: edges acyclic; Type: TRIGGER; Schema: holdfast; Owner: -
--

CREATE TRIGGER acyclic AFTER INSERT ON holdfast.edges REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION holdfast.check_new_edges();


--
-- Name: runs begins; Type: TRIGGER; Schema: holdfast; Owner: -
--

CREATE TRIGGER begins AFTER INSERT ON holdfast.runs REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION holdfast.journal_new_runs();


--
-- Name: steps begins; Type: TRIGGER; Schema: holdfast; Owner: -
--

CREATE TRIGGER begins AFTER INSERT ON holdfast.steps REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION holdfast.check_new_steps();


--
-- Name: runs journaled; Type: TRIGGER; Schema: holdfast; Owner: -
--

CREATE TRIGGER journaled AFTER UPDATE ON holdfast.runs REFERENCING OLD TABLE AS o NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION holdfast.journal_run_moves();


--
-- Name: steps journaled; Type: TRIGGER; Schema: holdfast; Owner: -
--

CREATE TRIGGER journaled AFTER UPDATE ON holdfast.steps REFERENCING OLD TABLE AS o NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION holdfast.journal_step_moves();


--
-- Name: runs keeps_its_id; Type: TRIGGER; Schema: holdfast; Owner: -
--

CREATE TRIGGER keeps_its_id BEFORE UPDATE OF id ON holdfast.runs FOR EACH STATEMENT EXECUTE FUNCTION holdfast.refuse_renumbering();


--
-- Name: steps keeps_its_id; Type: TRIGGER; Schema: holdfast; Owner: -
--

CREATE TRIGGER keeps_its_id BEFORE UPDATE OF id ON holdfast.steps FOR EACH STATEMENT EXECUTE FUNCTION holdfast.refuse_renumbering();


--
-- Name: journal stays; Type: TRIGGER; Schema: holdfast; Owner: -
--

CREATE TRIGGER stays BEFORE DELETE OR UPDATE ON holdfast.journal FOR EACH ROW EXECUTE FUNCTION holdfast.refuse_change();


--
-- Name: limit_changes stays; Type: TRIGGER; Schema: holdfast; Owner: -
--

CREATE TRIGGER stays BEFORE DELETE OR UPDATE ON holdfast.limit_changes FOR EACH ROW EXECUTE FUNCTION holdfast.refuse_change();


--
-- Name: notes stays; Type: TRIGGER; Schema: holdfast; Owner: -
--

CREATE TRIGGER stays BEFORE DELETE OR UPDATE ON holdfast.notes FOR EACH ROW EXECUTE FUNCTION holdfast.refuse_change();


--
-- Name: queue_pauses stays; Type: TRIGGER; Schema: holdfast; Owner: -
--

CREATE TRIGGER stays BEFORE DELETE OR UPDATE ON holdfast.queue_pauses FOR EACH ROW EXECUTE FUNCTION holdfast.refuse_change();


--
-- Name: retention_changes stays; Type: TRIGGER; Schema: holdfast; Owner: -
--

CREATE TRIGGER stays BEFORE DELETE OR UPDATE ON holdfast.retention_changes FOR EACH ROW EXECUTE FUNCTION holdfast.refuse_change();


--
-- Name: schedule_changes stays; Type: TRIGGER; Schema: holdfast; Owner: -
--

CREATE TRIGGER stays BEFORE DELETE OR UPDATE ON holdfast.schedule_changes FOR EACH ROW EXECUTE FUNCTION holdfast.refuse_change();


--
-- Name: journal stays_whole; Type: TRIGGER; Schema: holdfast; Owner: -
--

CREATE TRIGGER stays_whole BEFORE TRUNCATE ON holdfast.journal FOR EACH STATEMENT EXECUTE FUNCTION holdfast.refuse_change();


--
-- Name: limit_changes stays_whole; Type: TRIGGER; Schema: holdfast; Owner: -
--

CREATE TRIGGER stays_whole BEFORE TRUNCATE ON holdfast.limit_changes FOR EACH STATEMENT EXECUTE FUNCTION holdfast.refuse_change();


--
-- Name: notes stays_whole; Type: TRIGGER; Schema: holdfast; Owner: -
--

CREATE TRIGGER stays_whole BEFORE TRUNCATE ON holdfast.notes FOR EACH STATEMENT EXECUTE FUNCTION holdfast.refuse_change();


--
-- Name: queue_pauses stays_whole; Type: TRIGGER; Schema: holdfast; Owner: -
--

CREATE TRIGGER stays_whole BEFORE TRUNCATE ON holdfast.queue_pauses FOR EACH STATEMENT EXECUTE FUNCTION holdfast.refuse_change();


--
-- Name: retention_changes stays_whole; Type: TRIGGER; Schema: holdfast; Owner: -
--

CREATE TRIGGER stays_whole BEFORE TRUNCATE ON holdfast.retention_changes FOR EACH STATEMENT EXECUTE FUNCTION holdfast.refuse_change();


--
-- Name: schedule_changes stays_whole; Type: TRIGGER; Schema: holdfast; Owner: -
--

CREATE TRIGGER stays_whole BEFORE TRUNCATE ON holdfast.schedule_changes FOR EACH STATEMENT EXECUTE FUNCTION holdfast.refuse_change();


--
-- Name: runs takes_no_other_write; Type: TRIGGER; Schema: ops; Owner: -
--

CREATE TRIGGER takes_no_other_write INSTEAD OF INSERT OR DELETE ON ops.runs FOR EACH ROW EXECUTE FUNCTION ops.refuse_write();


--
-- Name: approvals takes_no_write; Type: TRIGGER; Schema: ops; Owner: -
--

CREATE TRIGGER takes_no_write INSTEAD OF INSERT OR DELETE OR UPDATE ON ops.approvals FOR EACH ROW EXECUTE FUNCTION ops.refuse_write();


--
-- Name: artifacts takes_no_write; Type: TRIGGER; Schema: ops; Owner: -
--

CREATE TRIGGER takes_no_write INSTEAD OF INSERT OR DELETE OR UPDATE ON ops.artifacts FOR EACH ROW EXECUTE FUNCTION ops.refuse_write();


--
-- Name: environments takes_no_write; Type: TRIGGER; Schema: ops; Owner: -
--

CREATE TRIGGER takes_no_write INSTEAD OF INSERT OR DELETE OR UPDATE ON ops.environments FOR EACH ROW EXECUTE FUNCTION ops.refuse_write();


--
-- Name: projects takes_no_write; Type: TRIGGER; Schema: ops; Owner: -
--

CREATE TRIGGER takes_no_write INSTEAD OF INSERT OR DELETE OR UPDATE ON ops.projects FOR EACH ROW EXECUTE FUNCTION ops.refuse_write();


--
-- Name: run_events takes_no_write; Type: TRIGGER; Schema: ops; Owner: -
--

CREATE TRIGGER takes_no_write INSTEAD OF INSERT OR DELETE OR UPDATE ON ops.run_events FOR EACH ROW EXECUTE FUNCTION ops.refuse_write();


--
-- Name: webhook_deliveries takes_no_write; Type: TRIGGER; Schema: ops; Owner: -
--

CREATE TRIGGER takes_no_write INSTEAD OF INSERT OR DELETE OR UPDATE ON ops.webhook_deliveries FOR EACH ROW EXECUTE FUNCTION ops.refuse_write();


--
-- Name: runs takes_stale_runs; Type: TRIGGER; Schema: ops; Owner: -
--

CREATE TRIGGER takes_stale_runs INSTEAD OF UPDATE ON ops.runs FOR EACH ROW EXECUTE FUNCTION ops.take_stale_update();


--
-- Name: audit_logs takes_no_write; Type: TRIGGER; Schema: work; Owner: -
--

CREATE TRIGGER takes_no_write INSTEAD OF INSERT OR DELETE OR UPDATE ON work.audit_logs FOR EACH ROW EXECUTE FUNCTION work.refuse_write();


--
-- Name: tasks takes_no_write; Type: TRIGGER; Schema: work; Owner: -
--

CREATE TRIGGER takes_no_write INSTEAD OF INSERT OR DELETE OR UPDATE ON work.tasks FOR EACH ROW EXECUTE FUNCTION work.refuse_write();


--
-- Name: kinds kinds_policy_fkey; Type: FK CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.kinds
    ADD CONSTRAINT kinds_policy_fkey FOREIGN KEY (policy) REFERENCES holdfast.policies(policy);


--
-- Name: machine_moves machine_moves_machine_from_state_fkey; Type: FK CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.machine_moves
    ADD CONSTRAINT machine_moves_machine_from_state_fkey FOREIGN KEY (machine, from_state) REFERENCES holdfast.machine_states(machine, state);


--
-- Name: machine_moves machine_moves_machine_to_state_fkey; Type: FK CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.machine_moves
    ADD CONSTRAINT machine_moves_machine_to_state_fkey FOREIGN KEY (machine, to_state) REFERENCES holdfast.machine_states(machine, state);


--
-- Name: machine_states machine_states_machine_fkey; Type: FK CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.machine_states
    ADD CONSTRAINT machine_states_machine_fkey FOREIGN KEY (machine) REFERENCES holdfast.machines(machine);


--
-- Name: machines machines_policy_fkey; Type: FK CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.machines
    ADD CONSTRAINT machines_policy_fkey FOREIGN KEY (policy) REFERENCES holdfast.policies(policy);


--
-- Name: schedules schedules_face_fkey; Type: FK CONSTRAINT; Schema: holdfast; Owner: -
--

ALTER TABLE ONLY holdfast.schedules
    ADD CONSTRAINT schedules_face_fkey FOREIGN KEY (face) REFERENCES holdfast.faces(face);


--
-- Name: definitions; Type: ROW SECURITY; Schema: flow; Owner: -
--

ALTER TABLE flow.definitions ENABLE ROW LEVEL SECURITY;

--
-- Name: definitions kernel_sees_all; Type: POLICY; Schema: flow; Owner: -
--

CREATE POLICY kernel_sees_all ON flow.definitions TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: definitions own_tenants; Type: POLICY; Schema: flow; Owner: -
--

CREATE POLICY own_tenants ON flow.definitions FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = '*'::text) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))));


--
-- Name: edges; Type: ROW SECURITY; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.edges ENABLE ROW LEVEL SECURITY;

--
-- Name: journal; Type: ROW SECURITY; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.journal ENABLE ROW LEVEL SECURITY;

--
-- Name: edges kernel_sees_all; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY kernel_sees_all ON holdfast.edges TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: journal kernel_sees_all; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY kernel_sees_all ON holdfast.journal TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: keys kernel_sees_all; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY kernel_sees_all ON holdfast.keys TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: kinds kernel_sees_all; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY kernel_sees_all ON holdfast.kinds TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: limit_changes kernel_sees_all; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY kernel_sees_all ON holdfast.limit_changes TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: limit_states kernel_sees_all; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY kernel_sees_all ON holdfast.limit_states TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: limits kernel_sees_all; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY kernel_sees_all ON holdfast.limits TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: note_keys kernel_sees_all; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY kernel_sees_all ON holdfast.note_keys TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: notes kernel_sees_all; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY kernel_sees_all ON holdfast.notes TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: policies kernel_sees_all; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY kernel_sees_all ON holdfast.policies TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: resolutions kernel_sees_all; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY kernel_sees_all ON holdfast.resolutions TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: retention_changes kernel_sees_all; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY kernel_sees_all ON holdfast.retention_changes TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: retention_rules kernel_sees_all; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY kernel_sees_all ON holdfast.retention_rules TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: run_steps kernel_sees_all; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY kernel_sees_all ON holdfast.run_steps TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: runs kernel_sees_all; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY kernel_sees_all ON holdfast.runs TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: schedule_changes kernel_sees_all; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY kernel_sees_all ON holdfast.schedule_changes TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: schedules kernel_sees_all; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY kernel_sees_all ON holdfast.schedules TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: steps kernel_sees_all; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY kernel_sees_all ON holdfast.steps TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: ticks kernel_sees_all; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY kernel_sees_all ON holdfast.ticks TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: workers kernel_sees_all; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY kernel_sees_all ON holdfast.workers TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: keys; Type: ROW SECURITY; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.keys ENABLE ROW LEVEL SECURITY;

--
-- Name: kinds; Type: ROW SECURITY; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.kinds ENABLE ROW LEVEL SECURITY;

--
-- Name: limit_changes; Type: ROW SECURITY; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.limit_changes ENABLE ROW LEVEL SECURITY;

--
-- Name: limit_states; Type: ROW SECURITY; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.limit_states ENABLE ROW LEVEL SECURITY;

--
-- Name: limits; Type: ROW SECURITY; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.limits ENABLE ROW LEVEL SECURITY;

--
-- Name: note_keys; Type: ROW SECURITY; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.note_keys ENABLE ROW LEVEL SECURITY;

--
-- Name: notes; Type: ROW SECURITY; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.notes ENABLE ROW LEVEL SECURITY;

--
-- Name: run_steps of_own_runs; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY of_own_runs ON holdfast.run_steps FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING ((EXISTS ( SELECT
   FROM holdfast.runs r
  WHERE (r.id = run_steps.run_id))));


--
-- Name: edges of_own_steps; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY of_own_steps ON holdfast.edges FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING ((EXISTS ( SELECT
   FROM holdfast.steps s
  WHERE (s.id = edges.step_id))));


--
-- Name: note_keys of_own_steps; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY of_own_steps ON holdfast.note_keys FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING ((EXISTS ( SELECT
   FROM holdfast.steps s
  WHERE (s.id = note_keys.step_id))));


--
-- Name: journal own_tenants; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY own_tenants ON holdfast.journal FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))));


--
-- Name: kinds own_tenants; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY own_tenants ON holdfast.kinds FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = '*'::text) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))));


--
-- Name: limit_changes own_tenants; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY own_tenants ON holdfast.limit_changes FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))));


--
-- Name: limit_states own_tenants; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY own_tenants ON holdfast.limit_states FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])) OR ((tenant = '*'::text) AND (EXISTS ( SELECT
   FROM holdfast.steps s
  WHERE (s.limited_by = limit_states.id))))));


--
-- Name: limits own_tenants; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY own_tenants ON holdfast.limits FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])) OR (tenant = '*'::text)));


--
-- Name: notes own_tenants; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY own_tenants ON holdfast.notes FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))));


--
-- Name: policies own_tenants; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY own_tenants ON holdfast.policies FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = '*'::text) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))));


--
-- Name: resolutions own_tenants; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY own_tenants ON holdfast.resolutions FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))));


--
-- Name: retention_changes own_tenants; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY own_tenants ON holdfast.retention_changes FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = '*'::text) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))));


--
-- Name: retention_rules own_tenants; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY own_tenants ON holdfast.retention_rules FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = '*'::text) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))));


--
-- Name: runs own_tenants; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY own_tenants ON holdfast.runs FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))));


--
-- Name: schedule_changes own_tenants; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY own_tenants ON holdfast.schedule_changes FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))));


--
-- Name: schedules own_tenants; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY own_tenants ON holdfast.schedules FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))));


--
-- Name: steps own_tenants; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY own_tenants ON holdfast.steps FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))));


--
-- Name: ticks own_tenants; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY own_tenants ON holdfast.ticks FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))));


--
-- Name: workers own_tenants; Type: POLICY; Schema: holdfast; Owner: -
--

CREATE POLICY own_tenants ON holdfast.workers FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR ((tenants <> '{}'::text[]) AND (tenants <@ ( SELECT holdfast.allowed_tenants() AS allowed_tenants)))));


--
-- Name: policies; Type: ROW SECURITY; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.policies ENABLE ROW LEVEL SECURITY;

--
-- Name: resolutions; Type: ROW SECURITY; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.resolutions ENABLE ROW LEVEL SECURITY;

--
-- Name: retention_changes; Type: ROW SECURITY; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.retention_changes ENABLE ROW LEVEL SECURITY;

--
-- Name: retention_rules; Type: ROW SECURITY; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.retention_rules ENABLE ROW LEVEL SECURITY;

--
-- Name: run_steps; Type: ROW SECURITY; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.run_steps ENABLE ROW LEVEL SECURITY;

--
-- Name: runs; Type: ROW SECURITY; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.runs ENABLE ROW LEVEL SECURITY;

--
-- Name: schedule_changes; Type: ROW SECURITY; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.schedule_changes ENABLE ROW LEVEL SECURITY;

--
-- Name: schedules; Type: ROW SECURITY; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.schedules ENABLE ROW LEVEL SECURITY;

--
-- Name: steps; Type: ROW SECURITY; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.steps ENABLE ROW LEVEL SECURITY;

--
-- Name: ticks; Type: ROW SECURITY; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.ticks ENABLE ROW LEVEL SECURITY;

--
-- Name: workers; Type: ROW SECURITY; Schema: holdfast; Owner: -
--

ALTER TABLE holdfast.workers ENABLE ROW LEVEL SECURITY;

--
-- Name: deliveries; Type: ROW SECURITY; Schema: ops; Owner: -
--

ALTER TABLE ops.deliveries ENABLE ROW LEVEL SECURITY;

--
-- Name: deliveries kernel_sees_all; Type: POLICY; Schema: ops; Owner: -
--

CREATE POLICY kernel_sees_all ON ops.deliveries TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: known_environments kernel_sees_all; Type: POLICY; Schema: ops; Owner: -
--

CREATE POLICY kernel_sees_all ON ops.known_environments TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: known_projects kernel_sees_all; Type: POLICY; Schema: ops; Owner: -
--

CREATE POLICY kernel_sees_all ON ops.known_projects TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: run_approvals kernel_sees_all; Type: POLICY; Schema: ops; Owner: -
--

CREATE POLICY kernel_sees_all ON ops.run_approvals TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: run_artifacts kernel_sees_all; Type: POLICY; Schema: ops; Owner: -
--

CREATE POLICY kernel_sees_all ON ops.run_artifacts TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: run_facts kernel_sees_all; Type: POLICY; Schema: ops; Owner: -
--

CREATE POLICY kernel_sees_all ON ops.run_facts TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: settings kernel_sees_all; Type: POLICY; Schema: ops; Owner: -
--

CREATE POLICY kernel_sees_all ON ops.settings TO hf_owner USING (true) WITH CHECK (true);


--
-- Name: known_environments; Type: ROW SECURITY; Schema: ops; Owner: -
--

ALTER TABLE ops.known_environments ENABLE ROW LEVEL SECURITY;

--
-- Name: known_projects; Type: ROW SECURITY; Schema: ops; Owner: -
--

ALTER TABLE ops.known_projects ENABLE ROW LEVEL SECURITY;

--
-- Name: deliveries own_tenants; Type: POLICY; Schema: ops; Owner: -
--

CREATE POLICY own_tenants ON ops.deliveries FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))));


--
-- Name: known_environments own_tenants; Type: POLICY; Schema: ops; Owner: -
--

CREATE POLICY own_tenants ON ops.known_environments FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))));


--
-- Name: known_projects own_tenants; Type: POLICY; Schema: ops; Owner: -
--

CREATE POLICY own_tenants ON ops.known_projects FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))));


--
-- Name: run_approvals own_tenants; Type: POLICY; Schema: ops; Owner: -
--

CREATE POLICY own_tenants ON ops.run_approvals FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))));


--
-- Name: run_artifacts own_tenants; Type: POLICY; Schema: ops; Owner: -
--

CREATE POLICY own_tenants ON ops.run_artifacts FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))));


--
-- Name: run_facts own_tenants; Type: POLICY; Schema: ops; Owner: -
--

CREATE POLICY own_tenants ON ops.run_facts FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[]))));


--
-- Name: settings own_tenants; Type: POLICY; Schema: ops; Owner: -
--

CREATE POLICY own_tenants ON ops.settings FOR SELECT TO hf_producer, hf_worker, hf_reader, hf_operator USING (((( SELECT holdfast.allowed_tenants() AS allowed_tenants) IS NULL) OR (tenant = ANY (( SELECT holdfast.allowed_tenants() AS allowed_tenants)::text[])) OR (tenant = '*'::text)));


--
-- Name: run_approvals; Type: ROW SECURITY; Schema: ops; Owner: -
--

ALTER TABLE ops.run_approvals ENABLE ROW LEVEL SECURITY;

--
-- Name: run_artifacts; Type: ROW SECURITY; Schema: ops; Owner: -
--

ALTER TABLE ops.run_artifacts ENABLE ROW LEVEL SECURITY;

--
-- Name: run_facts; Type: ROW SECURITY; Schema: ops; Owner: -
--

ALTER TABLE ops.run_facts ENABLE ROW LEVEL SECURITY;

--
-- Name: settings; Type: ROW SECURITY; Schema: ops; Owner: -
--

ALTER TABLE ops.settings ENABLE ROW LEVEL SECURITY;

--
-- Name: SCHEMA flow; Type: ACL; Schema: -; Owner: -
--

GRANT USAGE ON SCHEMA flow TO hf_producer;
GRANT USAGE ON SCHEMA flow TO hf_worker;
GRANT USAGE ON SCHEMA flow TO hf_reader;
GRANT USAGE ON SCHEMA flow TO hf_operator;


--
-- Name: SCHEMA holdfast; Type: ACL; Schema: -; Owner: -
--

GRANT USAGE ON SCHEMA holdfast TO hf_producer;
GRANT USAGE ON SCHEMA holdfast TO hf_worker;
GRANT USAGE ON SCHEMA holdfast TO hf_reader;
GRANT USAGE ON SCHEMA holdfast TO hf_operator;


--
-- Name: SCHEMA ops; Type: ACL; Schema: -; Owner: -
--

GRANT USAGE ON SCHEMA ops TO hf_producer;
GRANT USAGE ON SCHEMA ops TO hf_worker;
GRANT USAGE ON SCHEMA ops TO hf_reader;
GRANT USAGE ON SCHEMA ops TO hf_operator;


--
-- Name: SCHEMA work; Type: ACL; Schema: -; Owner: -
--

GRANT USAGE ON SCHEMA work TO hf_producer;
GRANT USAGE ON SCHEMA work TO hf_worker;
GRANT USAGE ON SCHEMA work TO hf_reader;
GRANT USAGE ON SCHEMA work TO hf_operator;


--
-- Name: FUNCTION adjust_step(step_id bigint, retry_limit integer, retryable boolean, backoff_request_seconds numeric); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.adjust_step(step_id bigint, retry_limit integer, retryable boolean, backoff_request_seconds numeric) FROM PUBLIC;
GRANT ALL ON FUNCTION flow.adjust_step(step_id bigint, retry_limit integer, retryable boolean, backoff_request_seconds numeric) TO hf_operator;


--
-- Name: FUNCTION begin_task(name text, steps jsonb, context jsonb, namespace text, version text, key text, tenant text, skip text[], about jsonb, key_for interval); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.begin_task(name text, steps jsonb, context jsonb, namespace text, version text, key text, tenant text, skip text[], about jsonb, key_for interval) FROM PUBLIC;


--
-- Name: FUNCTION calculate_dependency_levels(task_id uuid); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.calculate_dependency_levels(task_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION flow.calculate_dependency_levels(task_id uuid) TO hf_producer;
GRANT ALL ON FUNCTION flow.calculate_dependency_levels(task_id uuid) TO hf_worker;
GRANT ALL ON FUNCTION flow.calculate_dependency_levels(task_id uuid) TO hf_reader;
GRANT ALL ON FUNCTION flow.calculate_dependency_levels(task_id uuid) TO hf_operator;


--
-- Name: FUNCTION cancel_open(ids text[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.cancel_open(ids text[]) FROM PUBLIC;


--
-- Name: FUNCTION cancel_open(ids text[], reason text); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.cancel_open(ids text[], reason text) FROM PUBLIC;


--
-- Name: SEQUENCE step_ids; Type: ACL; Schema: holdfast; Owner: -
--

GRANT USAGE ON SEQUENCE holdfast.step_ids TO hf_producer;
GRANT USAGE ON SEQUENCE holdfast.step_ids TO hf_worker;
GRANT USAGE ON SEQUENCE holdfast.step_ids TO hf_operator;


--
-- Name: TABLE steps; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.steps TO hf_producer;
GRANT SELECT ON TABLE holdfast.steps TO hf_worker;
GRANT SELECT ON TABLE holdfast.steps TO hf_reader;
GRANT SELECT ON TABLE holdfast.steps TO hf_operator;


--
-- Name: FUNCTION check_adjustment(step holdfast.steps, retry_limit integer, backoff_request_seconds numeric); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.check_adjustment(step holdfast.steps, retry_limit integer, backoff_request_seconds numeric) FROM PUBLIC;


--
-- Name: FUNCTION check_limits(steps jsonb); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.check_limits(steps jsonb) FROM PUBLIC;


--
-- Name: FUNCTION check_skip(steps jsonb, skip text[]); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.check_skip(steps jsonb, skip text[]) FROM PUBLIC;


--
-- Name: FUNCTION checked_object(field text, content jsonb); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.checked_object(field text, content jsonb) FROM PUBLIC;


--
-- Name: FUNCTION closed_tasks(worker text, step_ids bigint[]); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.closed_tasks(worker text, step_ids bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION flow.closed_tasks(worker text, step_ids bigint[]) TO hf_producer;
GRANT ALL ON FUNCTION flow.closed_tasks(worker text, step_ids bigint[]) TO hf_worker;
GRANT ALL ON FUNCTION flow.closed_tasks(worker text, step_ids bigint[]) TO hf_reader;
GRANT ALL ON FUNCTION flow.closed_tasks(worker text, step_ids bigint[]) TO hf_operator;


--
-- Name: FUNCTION define_flow(name text, steps jsonb, namespace text, version text, description text, context_schema jsonb); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.define_flow(name text, steps jsonb, namespace text, version text, description text, context_schema jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION flow.define_flow(name text, steps jsonb, namespace text, version text, description text, context_schema jsonb) TO hf_worker;
GRANT ALL ON FUNCTION flow.define_flow(name text, steps jsonb, namespace text, version text, description text, context_schema jsonb) TO hf_operator;


--
-- Name: TABLE definitions; Type: ACL; Schema: flow; Owner: -
--

GRANT SELECT ON TABLE flow.definitions TO hf_producer;
GRANT SELECT ON TABLE flow.definitions TO hf_worker;
GRANT SELECT ON TABLE flow.definitions TO hf_reader;
GRANT SELECT ON TABLE flow.definitions TO hf_operator;


--
-- Name: FUNCTION definition_to_start(name text, context jsonb, namespace text, version text, tenant text); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.definition_to_start(name text, context jsonb, namespace text, version text, tenant text) FROM PUBLIC;


--
-- Name: FUNCTION fill_limits(steps jsonb, context jsonb); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.fill_limits(steps jsonb, context jsonb) FROM PUBLIC;


--
-- Name: TABLE runs; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.runs TO hf_producer;
GRANT SELECT ON TABLE holdfast.runs TO hf_worker;
GRANT SELECT ON TABLE holdfast.runs TO hf_reader;
GRANT SELECT ON TABLE holdfast.runs TO hf_operator;


--
-- Name: FUNCTION finished_task_of(step_id bigint); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.finished_task_of(step_id bigint) FROM PUBLIC;


--
-- Name: FUNCTION get_step_readiness_status(task_id uuid, step_ids bigint[]); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.get_step_readiness_status(task_id uuid, step_ids bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION flow.get_step_readiness_status(task_id uuid, step_ids bigint[]) TO hf_producer;
GRANT ALL ON FUNCTION flow.get_step_readiness_status(task_id uuid, step_ids bigint[]) TO hf_worker;
GRANT ALL ON FUNCTION flow.get_step_readiness_status(task_id uuid, step_ids bigint[]) TO hf_reader;
GRANT ALL ON FUNCTION flow.get_step_readiness_status(task_id uuid, step_ids bigint[]) TO hf_operator;


--
-- Name: FUNCTION get_step_readiness_status_batch(task_ids uuid[], step_ids bigint[]); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.get_step_readiness_status_batch(task_ids uuid[], step_ids bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION flow.get_step_readiness_status_batch(task_ids uuid[], step_ids bigint[]) TO hf_producer;
GRANT ALL ON FUNCTION flow.get_step_readiness_status_batch(task_ids uuid[], step_ids bigint[]) TO hf_worker;
GRANT ALL ON FUNCTION flow.get_step_readiness_status_batch(task_ids uuid[], step_ids bigint[]) TO hf_reader;
GRANT ALL ON FUNCTION flow.get_step_readiness_status_batch(task_ids uuid[], step_ids bigint[]) TO hf_operator;


--
-- Name: FUNCTION get_system_health_counts(); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.get_system_health_counts() FROM PUBLIC;
GRANT ALL ON FUNCTION flow.get_system_health_counts() TO hf_producer;
GRANT ALL ON FUNCTION flow.get_system_health_counts() TO hf_worker;
GRANT ALL ON FUNCTION flow.get_system_health_counts() TO hf_reader;
GRANT ALL ON FUNCTION flow.get_system_health_counts() TO hf_operator;


--
-- Name: FUNCTION get_task_execution_context(task_id uuid); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.get_task_execution_context(task_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION flow.get_task_execution_context(task_id uuid) TO hf_producer;
GRANT ALL ON FUNCTION flow.get_task_execution_context(task_id uuid) TO hf_worker;
GRANT ALL ON FUNCTION flow.get_task_execution_context(task_id uuid) TO hf_reader;
GRANT ALL ON FUNCTION flow.get_task_execution_context(task_id uuid) TO hf_operator;


--
-- Name: FUNCTION get_task_execution_context_batch(task_ids uuid[]); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.get_task_execution_context_batch(task_ids uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION flow.get_task_execution_context_batch(task_ids uuid[]) TO hf_producer;
GRANT ALL ON FUNCTION flow.get_task_execution_context_batch(task_ids uuid[]) TO hf_worker;
GRANT ALL ON FUNCTION flow.get_task_execution_context_batch(task_ids uuid[]) TO hf_reader;
GRANT ALL ON FUNCTION flow.get_task_execution_context_batch(task_ids uuid[]) TO hf_operator;


--
-- Name: FUNCTION initialize_task(name text, steps jsonb, context jsonb, namespace text, version text, key text, tenant text, skip text[], about jsonb, key_for interval); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.initialize_task(name text, steps jsonb, context jsonb, namespace text, version text, key text, tenant text, skip text[], about jsonb, key_for interval) FROM PUBLIC;
GRANT ALL ON FUNCTION flow.initialize_task(name text, steps jsonb, context jsonb, namespace text, version text, key text, tenant text, skip text[], about jsonb, key_for interval) TO hf_producer;
GRANT ALL ON FUNCTION flow.initialize_task(name text, steps jsonb, context jsonb, namespace text, version text, key text, tenant text, skip text[], about jsonb, key_for interval) TO hf_worker;
GRANT ALL ON FUNCTION flow.initialize_task(name text, steps jsonb, context jsonb, namespace text, version text, key text, tenant text, skip text[], about jsonb, key_for interval) TO hf_operator;


--
-- Name: FUNCTION is_any_open(ids text[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.is_any_open(ids text[]) FROM PUBLIC;


--
-- Name: FUNCTION is_any_open(ids text[]); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.is_any_open(ids text[]) FROM PUBLIC;


--
-- Name: FUNCTION judge_counts(state text, total bigint, completed bigint, failed bigint, ready bigint, in_progress bigint, blocked bigint); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.judge_counts(state text, total bigint, completed bigint, failed bigint, ready bigint, in_progress bigint, blocked bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION flow.judge_counts(state text, total bigint, completed bigint, failed bigint, ready bigint, in_progress bigint, blocked bigint) TO hf_producer;
GRANT ALL ON FUNCTION flow.judge_counts(state text, total bigint, completed bigint, failed bigint, ready bigint, in_progress bigint, blocked bigint) TO hf_worker;
GRANT ALL ON FUNCTION flow.judge_counts(state text, total bigint, completed bigint, failed bigint, ready bigint, in_progress bigint, blocked bigint) TO hf_reader;
GRANT ALL ON FUNCTION flow.judge_counts(state text, total bigint, completed bigint, failed bigint, ready bigint, in_progress bigint, blocked bigint) TO hf_operator;


--
-- Name: FUNCTION moves_by(task holdfast.runs, worker text); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.moves_by(task holdfast.runs, worker text) FROM PUBLIC;


--
-- Name: TABLE edges; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.edges TO hf_producer;
GRANT SELECT ON TABLE holdfast.edges TO hf_worker;
GRANT SELECT ON TABLE holdfast.edges TO hf_reader;
GRANT SELECT ON TABLE holdfast.edges TO hf_operator;


--
-- Name: TABLE run_steps; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.run_steps TO hf_producer;
GRANT SELECT ON TABLE holdfast.run_steps TO hf_worker;
GRANT SELECT ON TABLE holdfast.run_steps TO hf_reader;
GRANT SELECT ON TABLE holdfast.run_steps TO hf_operator;


--
-- Name: FUNCTION plan_of_run(run_id uuid, afresh bigint[]); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.plan_of_run(run_id uuid, afresh bigint[]) FROM PUBLIC;


--
-- Name: FUNCTION refuse_write(); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.refuse_write() FROM PUBLIC;


--
-- Name: FUNCTION allowed_tenants(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.allowed_tenants() FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.allowed_tenants() TO hf_producer;
GRANT ALL ON FUNCTION holdfast.allowed_tenants() TO hf_worker;
GRANT ALL ON FUNCTION holdfast.allowed_tenants() TO hf_reader;
GRANT ALL ON FUNCTION holdfast.allowed_tenants() TO hf_operator;


--
-- Name: FUNCTION result_in_run(run_id uuid, name text); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.result_in_run(run_id uuid, name text) FROM PUBLIC;
GRANT ALL ON FUNCTION flow.result_in_run(run_id uuid, name text) TO hf_producer;
GRANT ALL ON FUNCTION flow.result_in_run(run_id uuid, name text) TO hf_worker;
GRANT ALL ON FUNCTION flow.result_in_run(run_id uuid, name text) TO hf_reader;
GRANT ALL ON FUNCTION flow.result_in_run(run_id uuid, name text) TO hf_operator;


--
-- Name: FUNCTION retry_from(step_id bigint, reason text); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.retry_from(step_id bigint, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION flow.retry_from(step_id bigint, reason text) TO hf_operator;


--
-- Name: FUNCTION safe_transition_to(id anycompatible, state text, reason text, actor text); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.safe_transition_to(id anycompatible, state text, reason text, actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION flow.safe_transition_to(id anycompatible, state text, reason text, actor text) TO hf_operator;


--
-- Name: FUNCTION settled_tasks(worker text, step_ids bigint[]); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.settled_tasks(worker text, step_ids bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION flow.settled_tasks(worker text, step_ids bigint[]) TO hf_producer;
GRANT ALL ON FUNCTION flow.settled_tasks(worker text, step_ids bigint[]) TO hf_worker;
GRANT ALL ON FUNCTION flow.settled_tasks(worker text, step_ids bigint[]) TO hf_reader;
GRANT ALL ON FUNCTION flow.settled_tasks(worker text, step_ids bigint[]) TO hf_operator;


--
-- Name: FUNCTION start_for_tick(target text, input jsonb, options jsonb, tenant text); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.start_for_tick(target text, input jsonb, options jsonb, tenant text) FROM PUBLIC;


--
-- Name: FUNCTION start_task(name text, context jsonb, namespace text, version text, key text, tenant text, skip text[], about jsonb, key_for interval); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.start_task(name text, context jsonb, namespace text, version text, key text, tenant text, skip text[], about jsonb, key_for interval) FROM PUBLIC;
GRANT ALL ON FUNCTION flow.start_task(name text, context jsonb, namespace text, version text, key text, tenant text, skip text[], about jsonb, key_for interval) TO hf_producer;
GRANT ALL ON FUNCTION flow.start_task(name text, context jsonb, namespace text, version text, key text, tenant text, skip text[], about jsonb, key_for interval) TO hf_worker;
GRANT ALL ON FUNCTION flow.start_task(name text, context jsonb, namespace text, version text, key text, tenant text, skip text[], about jsonb, key_for interval) TO hf_operator;


--
-- Name: FUNCTION state_to_change(id text); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.state_to_change(id text) FROM PUBLIC;


--
-- Name: FUNCTION states_from_history(task_id uuid); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.states_from_history(task_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION flow.states_from_history(task_id uuid) TO hf_producer;
GRANT ALL ON FUNCTION flow.states_from_history(task_id uuid) TO hf_worker;
GRANT ALL ON FUNCTION flow.states_from_history(task_id uuid) TO hf_reader;
GRANT ALL ON FUNCTION flow.states_from_history(task_id uuid) TO hf_operator;


--
-- Name: FUNCTION step_outcomes(task_id uuid, names text[]); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.step_outcomes(task_id uuid, names text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION flow.step_outcomes(task_id uuid, names text[]) TO hf_producer;
GRANT ALL ON FUNCTION flow.step_outcomes(task_id uuid, names text[]) TO hf_worker;
GRANT ALL ON FUNCTION flow.step_outcomes(task_id uuid, names text[]) TO hf_reader;
GRANT ALL ON FUNCTION flow.step_outcomes(task_id uuid, names text[]) TO hf_operator;


--
-- Name: FUNCTION step_surroundings(step_ids bigint[], of_steps bigint[], arguments text[], names text[], sources text[]); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.step_surroundings(step_ids bigint[], of_steps bigint[], arguments text[], names text[], sources text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION flow.step_surroundings(step_ids bigint[], of_steps bigint[], arguments text[], names text[], sources text[]) TO hf_producer;
GRANT ALL ON FUNCTION flow.step_surroundings(step_ids bigint[], of_steps bigint[], arguments text[], names text[], sources text[]) TO hf_worker;
GRANT ALL ON FUNCTION flow.step_surroundings(step_ids bigint[], of_steps bigint[], arguments text[], names text[], sources text[]) TO hf_reader;
GRANT ALL ON FUNCTION flow.step_surroundings(step_ids bigint[], of_steps bigint[], arguments text[], names text[], sources text[]) TO hf_operator;


--
-- Name: FUNCTION step_to_change(step_id bigint); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.step_to_change(step_id bigint) FROM PUBLIC;


--
-- Name: FUNCTION steps_around(task holdfast.runs, settled bigint[]); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.steps_around(task holdfast.runs, settled bigint[]) FROM PUBLIC;


--
-- Name: FUNCTION take_adjustment(); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.take_adjustment() FROM PUBLIC;


--
-- Name: FUNCTION touched_tasks(worker text, step_ids bigint[]); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.touched_tasks(worker text, step_ids bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION flow.touched_tasks(worker text, step_ids bigint[]) TO hf_producer;
GRANT ALL ON FUNCTION flow.touched_tasks(worker text, step_ids bigint[]) TO hf_worker;
GRANT ALL ON FUNCTION flow.touched_tasks(worker text, step_ids bigint[]) TO hf_reader;
GRANT ALL ON FUNCTION flow.touched_tasks(worker text, step_ids bigint[]) TO hf_operator;


--
-- Name: FUNCTION waiting_for(step_id bigint); Type: ACL; Schema: flow; Owner: -
--

REVOKE ALL ON FUNCTION flow.waiting_for(step_id bigint) FROM PUBLIC;


--
-- Name: FUNCTION act_on(id text, event text, reason text, result jsonb, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.act_on(id text, event text, reason text, result jsonb, actor text) FROM PUBLIC;


--
-- Name: FUNCTION act_on_run(run holdfast.runs, event text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.act_on_run(run holdfast.runs, event text) FROM PUBLIC;


--
-- Name: FUNCTION act_on_step(step holdfast.steps, event text, result jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.act_on_step(step holdfast.steps, event text, result jsonb) FROM PUBLIC;


--
-- Name: FUNCTION add_awaited(step_id bigint, lease_id bigint, steps jsonb, awaited text[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.add_awaited(step_id bigint, lease_id bigint, steps jsonb, awaited text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.add_awaited(step_id bigint, lease_id bigint, steps jsonb, awaited text[]) TO hf_worker;


--
-- Name: FUNCTION add_steps(run_id uuid, step_machine text, steps jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.add_steps(run_id uuid, step_machine text, steps jsonb) FROM PUBLIC;


--
-- Name: FUNCTION admit_children(parents bigint[], clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.admit_children(parents bigint[], clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION admit_steps(queue text, priority integer, candidates bigint[], wanted integer, pending bigint[], waits boolean, free integer); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.admit_steps(queue text, priority integer, candidates bigint[], wanted integer, pending bigint[], waits boolean, free integer) FROM PUBLIC;


--
-- Name: FUNCTION backfill_schedule(name text, ticks timestamp with time zone[], reason text, tenant text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.backfill_schedule(name text, ticks timestamp with time zone[], reason text, tenant text, actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.backfill_schedule(name text, ticks timestamp with time zone[], reason text, tenant text, actor text) TO hf_operator;


--
-- Name: FUNCTION backlog(queue text, most integer); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.backlog(queue text, most integer) FROM PUBLIC;


--
-- Name: FUNCTION chance(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.chance() FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.chance() TO hf_producer;
GRANT ALL ON FUNCTION holdfast.chance() TO hf_worker;
GRANT ALL ON FUNCTION holdfast.chance() TO hf_reader;
GRANT ALL ON FUNCTION holdfast.chance() TO hf_operator;


--
-- Name: FUNCTION backoff(policy text, failure integer, chance double precision); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.backoff(policy text, failure integer, chance double precision) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.backoff(policy text, failure integer, chance double precision) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.backoff(policy text, failure integer, chance double precision) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.backoff(policy text, failure integer, chance double precision) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.backoff(policy text, failure integer, chance double precision) TO hf_operator;


--
-- Name: FUNCTION begin_run(machine text, name text, step_machine text, steps jsonb, input jsonb, key text, tenant text, of_run uuid, key_for interval); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.begin_run(machine text, name text, step_machine text, steps jsonb, input jsonb, key text, tenant text, of_run uuid, key_for interval) FROM PUBLIC;


--
-- Name: FUNCTION begun_sweep(sweep holdfast.retention_sweep, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.begun_sweep(sweep holdfast.retention_sweep, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION call_moved(machine text, moves holdfast.shared_move[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.call_moved(machine text, moves holdfast.shared_move[]) FROM PUBLIC;


--
-- Name: FUNCTION call_prunes(step_ids bigint[], run_ids uuid[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.call_prunes(step_ids bigint[], run_ids uuid[]) FROM PUBLIC;


--
-- Name: FUNCTION cancel(id text, reason text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.cancel(id text, reason text, actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.cancel(id text, reason text, actor text) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.cancel(id text, reason text, actor text) TO hf_operator;


--
-- Name: FUNCTION cancel_unreleased(moves holdfast.step_move[], clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.cancel_unreleased(moves holdfast.step_move[], clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION cancelled_names(run holdfast.runs); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.cancelled_names(run holdfast.runs) FROM PUBLIC;


--
-- Name: FUNCTION catch_up_by_hand(moved bigint[], run_ids uuid[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.catch_up_by_hand(moved bigint[], run_ids uuid[]) FROM PUBLIC;


--
-- Name: FUNCTION change_retention(what text, owner text, machine text, queue text, outcome text, keep interval, is_removed boolean, reason text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.change_retention(what text, owner text, machine text, queue text, outcome text, keep interval, is_removed boolean, reason text, actor text) FROM PUBLIC;


--
-- Name: TABLE limits; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.limits TO hf_producer;
GRANT SELECT ON TABLE holdfast.limits TO hf_worker;
GRANT SELECT ON TABLE holdfast.limits TO hf_reader;
GRANT SELECT ON TABLE holdfast.limits TO hf_operator;


--
-- Name: FUNCTION change_rule(name text, tenant text, rule holdfast.limits); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.change_rule(name text, tenant text, rule holdfast.limits) FROM PUBLIC;


--
-- Name: FUNCTION charge_limit(step_id bigint, lease_id bigint, name text, weight numeric); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.charge_limit(step_id bigint, lease_id bigint, name text, weight numeric) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.charge_limit(step_id bigint, lease_id bigint, name text, weight numeric) TO hf_worker;


--
-- Name: FUNCTION check_about(about jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_about(about jsonb) FROM PUBLIC;


--
-- Name: FUNCTION check_all_tenants(what text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_all_tenants(what text) FROM PUBLIC;


--
-- Name: FUNCTION check_by_hand(subject text, machine text, id text, was_machine text, from_state text, to_state text, has_lease boolean, has_ended boolean); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_by_hand(subject text, machine text, id text, was_machine text, from_state text, to_state text, has_lease boolean, has_ended boolean) FROM PUBLIC;


--
-- Name: FUNCTION check_charge(limits text[], weight numeric, queue text, kind text, tenant text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_charge(limits text[], weight numeric, queue text, kind text, tenant text) FROM PUBLIC;


--
-- Name: FUNCTION check_charges(ids bigint[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_charges(ids bigint[]) FROM PUBLIC;


--
-- Name: FUNCTION check_claim(worker text, batch integer, lease interval); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_claim(worker text, batch integer, lease interval) FROM PUBLIC;


--
-- Name: FUNCTION check_cron(cron text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_cron(cron text) FROM PUBLIC;


--
-- Name: FUNCTION check_due(due_at timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_due(due_at timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION check_key_for(key text, key_for interval); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_key_for(key text, key_for interval) FROM PUBLIC;


--
-- Name: FUNCTION check_limit_name(name text, is_one boolean); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_limit_name(name text, is_one boolean) FROM PUBLIC;


--
-- Name: FUNCTION check_limit_names(names text[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_limit_names(names text[]) FROM PUBLIC;


--
-- Name: FUNCTION check_name(what text, name text, longest integer); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_name(what text, name text, longest integer) FROM PUBLIC;


--
-- Name: FUNCTION check_names(what text, names text[], longest integer); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_names(what text, names text[], longest integer) FROM PUBLIC;


--
-- Name: FUNCTION check_new_edges(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_new_edges() FROM PUBLIC;


--
-- Name: FUNCTION check_new_steps(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_new_steps() FROM PUBLIC;


--
-- Name: FUNCTION check_note(level text, message text, payload jsonb, key text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_note(level text, message text, payload jsonb, key text) FROM PUBLIC;


--
-- Name: FUNCTION check_open_run(run_id uuid, tenant text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_open_run(run_id uuid, tenant text) FROM PUBLIC;


--
-- Name: FUNCTION check_outcomes(outcomes jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_outcomes(outcomes jsonb) FROM PUBLIC;


--
-- Name: FUNCTION check_parking(parked_for text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_parking(parked_for text) FROM PUBLIC;


--
-- Name: FUNCTION check_plan(run_id uuid, steps jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_plan(run_id uuid, steps jsonb) FROM PUBLIC;


--
-- Name: FUNCTION check_policies(policies text[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_policies(policies text[]) FROM PUBLIC;


--
-- Name: FUNCTION check_reason(reason text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_reason(reason text) FROM PUBLIC;


--
-- Name: FUNCTION check_reserved(first_id bigint, last_id bigint); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_reserved(first_id bigint, last_id bigint) FROM PUBLIC;


--
-- Name: FUNCTION check_retention(what text, machine text, queue text, outcome text, keep interval); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_retention(what text, machine text, queue text, outcome text, keep interval) FROM PUBLIC;


--
-- Name: FUNCTION check_rule(rule holdfast.limits); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_rule(rule holdfast.limits) FROM PUBLIC;


--
-- Name: TABLE schedules; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.schedules TO hf_producer;
GRANT SELECT ON TABLE holdfast.schedules TO hf_worker;
GRANT SELECT ON TABLE holdfast.schedules TO hf_reader;
GRANT SELECT ON TABLE holdfast.schedules TO hf_operator;


--
-- Name: FUNCTION check_schedule(schedule holdfast.schedules, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_schedule(schedule holdfast.schedules, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION check_size(what text, value jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_size(what text, value jsonb) FROM PUBLIC;


--
-- Name: FUNCTION check_staged(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_staged() FROM PUBLIC;


--
-- Name: FUNCTION check_staging(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_staging() FROM PUBLIC;


--
-- Name: FUNCTION check_start(name text, input jsonb, priority integer); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_start(name text, input jsonb, priority integer) FROM PUBLIC;


--
-- Name: FUNCTION check_tenant(tenant text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_tenant(tenant text) FROM PUBLIC;


--
-- Name: FUNCTION check_weight(weight numeric, call_weight numeric); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.check_weight(weight numeric, call_weight numeric) FROM PUBLIC;


--
-- Name: FUNCTION claim_steps(worker text, queue text, kinds text[], batch integer, lease interval, tenants text[], machine text, free integer); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.claim_steps(worker text, queue text, kinds text[], batch integer, lease interval, tenants text[], machine text, free integer) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.claim_steps(worker text, queue text, kinds text[], batch integer, lease interval, tenants text[], machine text, free integer) TO hf_worker;


--
-- Name: FUNCTION clock(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.clock() FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.clock() TO hf_producer;
GRANT ALL ON FUNCTION holdfast.clock() TO hf_worker;
GRANT ALL ON FUNCTION holdfast.clock() TO hf_reader;
GRANT ALL ON FUNCTION holdfast.clock() TO hf_operator;


--
-- Name: FUNCTION close_runs(ids uuid[], clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.close_runs(ids uuid[], clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION closing_event(run holdfast.runs); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.closing_event(run holdfast.runs) FROM PUBLIC;


--
-- Name: FUNCTION copy_cursors(from_run uuid, to_run uuid, except_ids bigint[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.copy_cursors(from_run uuid, to_run uuid, except_ids bigint[]) FROM PUBLIC;


--
-- Name: FUNCTION count_holders(name text, tenant text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.count_holders(name text, tenant text) FROM PUBLIC;


--
-- Name: FUNCTION count_limits(changes holdfast.limit_change[], clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.count_limits(changes holdfast.limit_change[], clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION count_new_steps(run_id uuid, ids bigint[], clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.count_new_steps(run_id uuid, ids bigint[], clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION is_live(step holdfast.steps); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.is_live(step holdfast.steps) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.is_live(step holdfast.steps) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.is_live(step holdfast.steps) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.is_live(step holdfast.steps) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.is_live(step holdfast.steps) TO hf_operator;


--
-- Name: FUNCTION is_success(outcome text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.is_success(outcome text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.is_success(outcome text) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.is_success(outcome text) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.is_success(outcome text) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.is_success(outcome text) TO hf_operator;


--
-- Name: TABLE machine_states; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.machine_states TO hf_producer;
GRANT SELECT ON TABLE holdfast.machine_states TO hf_worker;
GRANT SELECT ON TABLE holdfast.machine_states TO hf_reader;
GRANT SELECT ON TABLE holdfast.machine_states TO hf_operator;


--
-- Name: FUNCTION count_steps(run_id uuid); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.count_steps(run_id uuid) FROM PUBLIC;


--
-- Name: FUNCTION define_kind(kind text, queue text, policy text, lease interval, timeout interval, limits text[], weight text, call_weight numeric); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.define_kind(kind text, queue text, policy text, lease interval, timeout interval, limits text[], weight text, call_weight numeric) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.define_kind(kind text, queue text, policy text, lease interval, timeout interval, limits text[], weight text, call_weight numeric) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.define_kind(kind text, queue text, policy text, lease interval, timeout interval, limits text[], weight text, call_weight numeric) TO hf_operator;


--
-- Name: FUNCTION define_limit(name text, concurrency integer, rate numeric, per interval, burst numeric, breaker_after integer, breaker_for interval, breaker_counts text[], tenant text, actor text, of_app boolean); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.define_limit(name text, concurrency integer, rate numeric, per interval, burst numeric, breaker_after integer, breaker_for interval, breaker_counts text[], tenant text, actor text, of_app boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.define_limit(name text, concurrency integer, rate numeric, per interval, burst numeric, breaker_after integer, breaker_for interval, breaker_counts text[], tenant text, actor text, of_app boolean) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.define_limit(name text, concurrency integer, rate numeric, per interval, burst numeric, breaker_after integer, breaker_for interval, breaker_counts text[], tenant text, actor text, of_app boolean) TO hf_operator;


--
-- Name: FUNCTION define_policy(policy text, tries integer, waits interval[], base interval, growth numeric, longest interval, jitter numeric, longest_retry_after interval, law text, jitter_in_seconds boolean, retryable boolean); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.define_policy(policy text, tries integer, waits interval[], base interval, growth numeric, longest interval, jitter numeric, longest_retry_after interval, law text, jitter_in_seconds boolean, retryable boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.define_policy(policy text, tries integer, waits interval[], base interval, growth numeric, longest interval, jitter numeric, longest_retry_after interval, law text, jitter_in_seconds boolean, retryable boolean) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.define_policy(policy text, tries integer, waits interval[], base interval, growth numeric, longest interval, jitter numeric, longest_retry_after interval, law text, jitter_in_seconds boolean, retryable boolean) TO hf_operator;


--
-- Name: FUNCTION define_schedule(name text, target text, face text, input jsonb, options jsonb, cron text, every interval, at timestamp with time zone, timezone text, starts_at timestamp with time zone, ends_at timestamp with time zone, missed text, missed_window interval, overlap text, spread interval, tenant text, actor text, from_code boolean); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.define_schedule(name text, target text, face text, input jsonb, options jsonb, cron text, every interval, at timestamp with time zone, timezone text, starts_at timestamp with time zone, ends_at timestamp with time zone, missed text, missed_window interval, overlap text, spread interval, tenant text, actor text, from_code boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.define_schedule(name text, target text, face text, input jsonb, options jsonb, cron text, every interval, at timestamp with time zone, timezone text, starts_at timestamp with time zone, ends_at timestamp with time zone, missed text, missed_window interval, overlap text, spread interval, tenant text, actor text, from_code boolean) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.define_schedule(name text, target text, face text, input jsonb, options jsonb, cron text, every interval, at timestamp with time zone, timezone text, starts_at timestamp with time zone, ends_at timestamp with time zone, missed text, missed_window interval, overlap text, spread interval, tenant text, actor text, from_code boolean) TO hf_operator;


--
-- Name: FUNCTION delete_run_steps(ids bigint[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.delete_run_steps(ids bigint[]) FROM PUBLIC;


--
-- Name: FUNCTION delete_steps_of_runs(ids uuid[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.delete_steps_of_runs(ids uuid[]) FROM PUBLIC;


--
-- Name: FUNCTION drop_month(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.drop_month() FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.drop_month() TO hf_worker;
GRANT ALL ON FUNCTION holdfast.drop_month() TO hf_operator;


--
-- Name: FUNCTION enlist_worker(worker text, queues text[], kinds text[], tenants text[], about jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.enlist_worker(worker text, queues text[], kinds text[], tenants text[], about jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.enlist_worker(worker text, queues text[], kinds text[], tenants text[], about jsonb) TO hf_worker;


--
-- Name: FUNCTION error_text(error jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.error_text(error jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.error_text(error jsonb) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.error_text(error jsonb) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.error_text(error jsonb) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.error_text(error jsonb) TO hf_operator;


--
-- Name: FUNCTION expire_leases(batch integer, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.expire_leases(batch integer, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION expire_steps(ids bigint[], clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.expire_steps(ids bigint[], clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION expired_runs(above uuid, upto uuid, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.expired_runs(above uuid, upto uuid, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION expired_steps(above bigint, upto bigint, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.expired_steps(above bigint, upto bigint, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION face_name(name text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.face_name(name text) FROM PUBLIC;


--
-- Name: FUNCTION face_violations(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.face_violations() FROM PUBLIC;


--
-- Name: FUNCTION fill_template(template text, input jsonb, source text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.fill_template(template text, input jsonb, source text) FROM PUBLIC;


--
-- Name: FUNCTION fire_due(schedule holdfast.schedules, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.fire_due(schedule holdfast.schedules, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION fire_schedules(batch integer); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.fire_schedules(batch integer) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.fire_schedules(batch integer) TO hf_worker;


--
-- Name: FUNCTION fire_tick(schedule holdfast.schedules, at timestamp with time zone, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.fire_tick(schedule holdfast.schedules, at timestamp with time zone, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION forget_idle_limits(batch integer); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.forget_idle_limits(batch integer) FROM PUBLIC;


--
-- Name: FUNCTION forget_limit(name text, reason text, tenant text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.forget_limit(name text, reason text, tenant text, actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.forget_limit(name text, reason text, tenant text, actor text) TO hf_operator;


--
-- Name: FUNCTION forget_retention(outcome text, machine text, queue text, tenant text, what text, reason text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.forget_retention(outcome text, machine text, queue text, tenant text, what text, reason text, actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.forget_retention(outcome text, machine text, queue text, tenant text, what text, reason text, actor text) TO hf_operator;


--
-- Name: FUNCTION forget_schedule(name text, reason text, tenant text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.forget_schedule(name text, reason text, tenant text, actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.forget_schedule(name text, reason text, tenant text, actor text) TO hf_operator;


--
-- Name: FUNCTION guard_violations(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.guard_violations() FROM PUBLIC;


--
-- Name: TABLE limit_states; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.limit_states TO hf_producer;
GRANT SELECT ON TABLE holdfast.limit_states TO hf_worker;
GRANT SELECT ON TABLE holdfast.limit_states TO hf_reader;
GRANT SELECT ON TABLE holdfast.limit_states TO hf_operator;


--
-- Name: FUNCTION has_limits(word text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.has_limits(word text) FROM PUBLIC;


--
-- Name: TABLE retention_rules; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.retention_rules TO hf_producer;
GRANT SELECT ON TABLE holdfast.retention_rules TO hf_worker;
GRANT SELECT ON TABLE holdfast.retention_rules TO hf_reader;
GRANT SELECT ON TABLE holdfast.retention_rules TO hf_operator;


--
-- Name: FUNCTION history_rule(what text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.history_rule(what text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.history_rule(what text) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.history_rule(what text) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.history_rule(what text) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.history_rule(what text) TO hf_operator;


--
-- Name: FUNCTION id_of_key(tenant text, key text, hash bytea); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.id_of_key(tenant text, key text, hash bytea) FROM PUBLIC;


--
-- Name: FUNCTION initial_state(machine text, subject text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.initial_state(machine text, subject text) FROM PUBLIC;


--
-- Name: FUNCTION is_all_due(schedule holdfast.schedules, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.is_all_due(schedule holdfast.schedules, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION is_due(step holdfast.steps, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.is_due(step holdfast.steps, clock timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.is_due(step holdfast.steps, clock timestamp with time zone) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.is_due(step holdfast.steps, clock timestamp with time zone) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.is_due(step holdfast.steps, clock timestamp with time zone) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.is_due(step holdfast.steps, clock timestamp with time zone) TO hf_operator;


--
-- Name: FUNCTION is_in_reach(due_at timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.is_in_reach(due_at timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION is_kernels_parking(parked_for text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.is_kernels_parking(parked_for text) FROM PUBLIC;


--
-- Name: FUNCTION is_live_worker(seen_at timestamp with time zone, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.is_live_worker(seen_at timestamp with time zone, clock timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.is_live_worker(seen_at timestamp with time zone, clock timestamp with time zone) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.is_live_worker(seen_at timestamp with time zone, clock timestamp with time zone) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.is_live_worker(seen_at timestamp with time zone, clock timestamp with time zone) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.is_live_worker(seen_at timestamp with time zone, clock timestamp with time zone) TO hf_operator;


--
-- Name: FUNCTION is_name(name text, longest integer); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.is_name(name text, longest integer) FROM PUBLIC;


--
-- Name: TABLE ticks; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.ticks TO hf_producer;
GRANT SELECT ON TABLE holdfast.ticks TO hf_worker;
GRANT SELECT ON TABLE holdfast.ticks TO hf_reader;
GRANT SELECT ON TABLE holdfast.ticks TO hf_operator;


--
-- Name: FUNCTION is_needed_tick(tick holdfast.ticks); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.is_needed_tick(tick holdfast.ticks) FROM PUBLIC;


--
-- Name: TABLE limit_changes; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.limit_changes TO hf_producer;
GRANT SELECT ON TABLE holdfast.limit_changes TO hf_worker;
GRANT SELECT ON TABLE holdfast.limit_changes TO hf_reader;
GRANT SELECT ON TABLE holdfast.limit_changes TO hf_operator;


--
-- Name: FUNCTION is_overruled(name text, tenant text, rule jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.is_overruled(name text, tenant text, rule jsonb) FROM PUBLIC;


--
-- Name: FUNCTION is_own_worker(tenants text[], allowed text[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.is_own_worker(tenants text[], allowed text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.is_own_worker(tenants text[], allowed text[]) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.is_own_worker(tenants text[], allowed text[]) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.is_own_worker(tenants text[], allowed text[]) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.is_own_worker(tenants text[], allowed text[]) TO hf_operator;


--
-- Name: FUNCTION is_probed(state holdfast.limit_states); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.is_probed(state holdfast.limit_states) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.is_probed(state holdfast.limit_states) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.is_probed(state holdfast.limit_states) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.is_probed(state holdfast.limit_states) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.is_probed(state holdfast.limit_states) TO hf_operator;


--
-- Name: FUNCTION would_admit(step holdfast.steps, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.would_admit(step holdfast.steps, clock timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.would_admit(step holdfast.steps, clock timestamp with time zone) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.would_admit(step holdfast.steps, clock timestamp with time zone) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.would_admit(step holdfast.steps, clock timestamp with time zone) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.would_admit(step holdfast.steps, clock timestamp with time zone) TO hf_operator;


--
-- Name: FUNCTION is_ready(step holdfast.steps, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.is_ready(step holdfast.steps, clock timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.is_ready(step holdfast.steps, clock timestamp with time zone) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.is_ready(step holdfast.steps, clock timestamp with time zone) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.is_ready(step holdfast.steps, clock timestamp with time zone) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.is_ready(step holdfast.steps, clock timestamp with time zone) TO hf_operator;


--
-- Name: FUNCTION is_rule_of_app(name text, tenant text, rule jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.is_rule_of_app(name text, tenant text, rule jsonb) FROM PUBLIC;


--
-- Name: FUNCTION journal_new_runs(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.journal_new_runs() FROM PUBLIC;


--
-- Name: FUNCTION journal_run_moves(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.journal_run_moves() FROM PUBLIC;


--
-- Name: FUNCTION journal_step_moves(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.journal_step_moves() FROM PUBLIC;


--
-- Name: FUNCTION judge_breakers(changes holdfast.limit_change[], clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.judge_breakers(changes holdfast.limit_change[], clock timestamp with time zone) FROM PUBLIC;


--
-- Name: TABLE kinds; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.kinds TO hf_producer;
GRANT SELECT ON TABLE holdfast.kinds TO hf_worker;
GRANT SELECT ON TABLE holdfast.kinds TO hf_reader;
GRANT SELECT ON TABLE holdfast.kinds TO hf_operator;


--
-- Name: FUNCTION kinds_of(tenant text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.kinds_of(tenant text) FROM PUBLIC;


--
-- Name: FUNCTION lacks_ticks(schedule holdfast.schedules, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.lacks_ticks(schedule holdfast.schedules, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION lease_holder(step_ids bigint[], lease_ids bigint[], others jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.lease_holder(step_ids bigint[], lease_ids bigint[], others jsonb) FROM PUBLIC;


--
-- Name: FUNCTION lease_of(kind text, tenant text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.lease_of(kind text, tenant text) FROM PUBLIC;


--
-- Name: FUNCTION left_unsettled(step_ids bigint[], lease_ids bigint[], results jsonb[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.left_unsettled(step_ids bigint[], lease_ids bigint[], results jsonb[]) FROM PUBLIC;


--
-- Name: FUNCTION limit_family(name text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.limit_family(name text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.limit_family(name text) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.limit_family(name text) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.limit_family(name text) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.limit_family(name text) TO hf_operator;


--
-- Name: FUNCTION limit_room(queue text, priority integer, candidates bigint[], ords integer[], limit_ids bigint[], charges numeric[], pending bigint[], clock timestamp with time zone, OUT ids bigint[], OUT slots integer[], OUT tokens numeric[], OUT bursts numeric[], OUT is_shut boolean[], OUT is_half_open boolean[], OUT is_behind boolean[], OUT rests numeric[], OUT fits boolean); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.limit_room(queue text, priority integer, candidates bigint[], ords integer[], limit_ids bigint[], charges numeric[], pending bigint[], clock timestamp with time zone, OUT ids bigint[], OUT slots integer[], OUT tokens numeric[], OUT bursts numeric[], OUT is_shut boolean[], OUT is_half_open boolean[], OUT is_behind boolean[], OUT rests numeric[], OUT fits boolean) FROM PUBLIC;


--
-- Name: FUNCTION limit_rule(name text, tenant text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.limit_rule(name text, tenant text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.limit_rule(name text, tenant text) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.limit_rule(name text, tenant text) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.limit_rule(name text, tenant text) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.limit_rule(name text, tenant text) TO hf_operator;


--
-- Name: FUNCTION limit_tenants(tenant text, what text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.limit_tenants(tenant text, what text) FROM PUBLIC;


--
-- Name: FUNCTION limit_violations(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.limit_violations() FROM PUBLIC;


--
-- Name: FUNCTION limits_for(given text[], templates text[], input jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.limits_for(given text[], templates text[], input jsonb) FROM PUBLIC;


--
-- Name: FUNCTION limits_in_force(queue text, candidates bigint[], OUT ords integer[], OUT limit_ids bigint[], OUT charges numeric[], OUT limited_by bigint[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.limits_in_force(queue text, candidates bigint[], OUT ords integer[], OUT limit_ids bigint[], OUT charges numeric[], OUT limited_by bigint[]) FROM PUBLIC;


--
-- Name: FUNCTION live_workers(queue text, kind text, tenant text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.live_workers(queue text, kind text, tenant text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.live_workers(queue text, kind text, tenant text) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.live_workers(queue text, kind text, tenant text) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.live_workers(queue text, kind text, tenant text) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.live_workers(queue text, kind text, tenant text) TO hf_operator;


--
-- Name: FUNCTION lock_held(step_ids bigint[], others jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.lock_held(step_ids bigint[], others jsonb) FROM PUBLIC;


--
-- Name: FUNCTION lock_whole_runs(ids uuid[], ends timestamp with time zone[], is_large boolean); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.lock_whole_runs(ids uuid[], ends timestamp with time zone[], is_large boolean) FROM PUBLIC;


--
-- Name: FUNCTION lost_leases(step_ids bigint[], lease_ids bigint[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.lost_leases(step_ids bigint[], lease_ids bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.lost_leases(step_ids bigint[], lease_ids bigint[]) TO hf_worker;


--
-- Name: FUNCTION make_partitions(ahead integer); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.make_partitions(ahead integer) FROM PUBLIC;


--
-- Name: FUNCTION make_run(id uuid, machine text, name text, step_machine text, steps jsonb, input jsonb, tenant text, of_run uuid); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.make_run(id uuid, machine text, name text, step_machine text, steps jsonb, input jsonb, tenant text, of_run uuid) FROM PUBLIC;


--
-- Name: FUNCTION mark_asleep(worker text, queue text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.mark_asleep(worker text, queue text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.mark_asleep(worker text, queue text) TO hf_worker;


--
-- Name: FUNCTION mark_resolved(step holdfast.steps, reason text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.mark_resolved(step holdfast.steps, reason text, actor text) FROM PUBLIC;


--
-- Name: FUNCTION matches(wanted text, value text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.matches(wanted text, value text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.matches(wanted text, value text) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.matches(wanted text, value text) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.matches(wanted text, value text) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.matches(wanted text, value text) TO hf_operator;


--
-- Name: FUNCTION matches_any(wanted text[], value text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.matches_any(wanted text[], value text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.matches_any(wanted text[], value text) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.matches_any(wanted text[], value text) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.matches_any(wanted text[], value text) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.matches_any(wanted text[], value text) TO hf_operator;


--
-- Name: FUNCTION measured_upkeep(worker text, about jsonb, batch integer, most integer); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.measured_upkeep(worker text, about jsonb, batch integer, most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.measured_upkeep(worker text, about jsonb, batch integer, most integer) TO hf_worker;


--
-- Name: FUNCTION microseconds(at timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.microseconds(at timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION move_run_steps(run_id uuid, batch integer); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.move_run_steps(run_id uuid, batch integer) FROM PUBLIC;


--
-- Name: FUNCTION move_runs(ids uuid[], event text, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.move_runs(ids uuid[], event text, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION move_steps(moves holdfast.step_move[], clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.move_steps(moves holdfast.step_move[], clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION namesakes(worker text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.namesakes(worker text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.namesakes(worker text) TO hf_worker;


--
-- Name: FUNCTION narrow_tenants(asked text[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.narrow_tenants(asked text[]) FROM PUBLIC;


--
-- Name: FUNCTION narrow_to_setting(tenants text[], setting text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.narrow_to_setting(tenants text[], setting text) FROM PUBLIC;


--
-- Name: FUNCTION next_tick_in(allowed text[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.next_tick_in(allowed text[]) FROM PUBLIC;


--
-- Name: FUNCTION note(step_id bigint, lease_id bigint, level text, message text, payload jsonb, key text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.note(step_id bigint, lease_id bigint, level text, message text, payload jsonb, key text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.note(step_id bigint, lease_id bigint, level text, message text, payload jsonb, key text) TO hf_worker;


--
-- Name: FUNCTION note_change(ids bigint[], what text, payload jsonb, reason text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.note_change(ids bigint[], what text, payload jsonb, reason text, actor text) FROM PUBLIC;


--
-- Name: FUNCTION note_schedule(tenant text, name text, event text, actor_kind text, actor text, reason text, payload jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.note_schedule(tenant text, name text, event text, actor_kind text, actor text, reason text, payload jsonb) FROM PUBLIC;


--
-- Name: FUNCTION of_ended_runs(ids bigint[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.of_ended_runs(ids bigint[]) FROM PUBLIC;


--
-- Name: FUNCTION old_months(clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.old_months(clock timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.old_months(clock timestamp with time zone) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.old_months(clock timestamp with time zone) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.old_months(clock timestamp with time zone) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.old_months(clock timestamp with time zone) TO hf_operator;


--
-- Name: FUNCTION outside_names(steps jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.outside_names(steps jsonb) FROM PUBLIC;


--
-- Name: FUNCTION park_steps(ids bigint[], parked_for text, reason text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.park_steps(ids bigint[], parked_for text, reason text, actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.park_steps(ids bigint[], parked_for text, reason text, actor text) TO hf_operator;


--
-- Name: FUNCTION park_unmovable_due(candidates bigint[], event text, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.park_unmovable_due(candidates bigint[], event text, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION park_unmovable_held(moves holdfast.step_move[], clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.park_unmovable_held(moves holdfast.step_move[], clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION park_unserved(queue text, candidates bigint[], clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.park_unserved(queue text, candidates bigint[], clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION parked_queues(limit_id bigint); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.parked_queues(limit_id bigint) FROM PUBLIC;


--
-- Name: FUNCTION partitions_ahead(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.partitions_ahead() FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.partitions_ahead() TO hf_producer;
GRANT ALL ON FUNCTION holdfast.partitions_ahead() TO hf_worker;
GRANT ALL ON FUNCTION holdfast.partitions_ahead() TO hf_reader;
GRANT ALL ON FUNCTION holdfast.partitions_ahead() TO hf_operator;


--
-- Name: FUNCTION pause_for_outcomes(outcomes jsonb, settled bigint[], clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.pause_for_outcomes(outcomes jsonb, settled bigint[], clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION pause_limit(name text, until timestamp with time zone, reason text, tenant text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.pause_limit(name text, until timestamp with time zone, reason text, tenant text, actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.pause_limit(name text, until timestamp with time zone, reason text, tenant text, actor text) TO hf_operator;


--
-- Name: FUNCTION pause_queue(queue text, reason text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.pause_queue(queue text, reason text, actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.pause_queue(queue text, reason text, actor text) TO hf_operator;


--
-- Name: FUNCTION pause_schedule(name text, reason text, tenant text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.pause_schedule(name text, reason text, tenant text, actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.pause_schedule(name text, reason text, tenant text, actor text) TO hf_operator;


--
-- Name: FUNCTION pick_admitted(worker text, queue text, priority integer, kinds text[], tenants text[], machine text, wanted integer, clock timestamp with time zone, free integer); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.pick_admitted(worker text, queue text, priority integer, kinds text[], tenants text[], machine text, wanted integer, clock timestamp with time zone, free integer) FROM PUBLIC;


--
-- Name: FUNCTION pick_served(queue text, priority integer, kinds text[], tenants text[], machine text, wanted integer, clock timestamp with time zone, after holdfast.due_position, OUT picked bigint[], OUT reached holdfast.due_position); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.pick_served(queue text, priority integer, kinds text[], tenants text[], machine text, wanted integer, clock timestamp with time zone, after holdfast.due_position, OUT picked bigint[], OUT reached holdfast.due_position) FROM PUBLIC;


--
-- Name: FUNCTION pick_steps(worker text, queue text, priority integer, kinds text[], tenants text[], machine text, wanted integer, clock timestamp with time zone, taken bigint[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.pick_steps(worker text, queue text, priority integer, kinds text[], tenants text[], machine text, wanted integer, clock timestamp with time zone, taken bigint[]) FROM PUBLIC;


--
-- Name: FUNCTION place_of(run_id uuid); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.place_of(run_id uuid) FROM PUBLIC;


--
-- Name: FUNCTION plan_by_interval(schedule holdfast.schedules, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.plan_by_interval(schedule holdfast.schedules, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION plan_schedules(plans jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.plan_schedules(plans jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.plan_schedules(plans jsonb) TO hf_worker;


--
-- Name: FUNCTION planned_limits(plan jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.planned_limits(plan jsonb) FROM PUBLIC;


--
-- Name: FUNCTION policy_name(policy text, tenant text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.policy_name(policy text, tenant text) FROM PUBLIC;


--
-- Name: TABLE machines; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.machines TO hf_producer;
GRANT SELECT ON TABLE holdfast.machines TO hf_worker;
GRANT SELECT ON TABLE holdfast.machines TO hf_reader;
GRANT SELECT ON TABLE holdfast.machines TO hf_operator;


--
-- Name: TABLE policies; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.policies TO hf_producer;
GRANT SELECT ON TABLE holdfast.policies TO hf_worker;
GRANT SELECT ON TABLE holdfast.policies TO hf_reader;
GRANT SELECT ON TABLE holdfast.policies TO hf_operator;


--
-- Name: FUNCTION step_policy(own text, kind text, machine text, tenant text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.step_policy(own text, kind text, machine text, tenant text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.step_policy(own text, kind text, machine text, tenant text) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.step_policy(own text, kind text, machine text, tenant text) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.step_policy(own text, kind text, machine text, tenant text) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.step_policy(own text, kind text, machine text, tenant text) TO hf_operator;


--
-- Name: FUNCTION policy_of(own text, kind text, machine text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.policy_of(own text, kind text, machine text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.policy_of(own text, kind text, machine text) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.policy_of(own text, kind text, machine text) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.policy_of(own text, kind text, machine text) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.policy_of(own text, kind text, machine text) TO hf_operator;


--
-- Name: FUNCTION policy_with_tries(policy text, tries integer, retryable boolean); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.policy_with_tries(policy text, tries integer, retryable boolean) FROM PUBLIC;


--
-- Name: FUNCTION position_of(place text, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.position_of(place text, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION prepare_runs(pick holdfast.pick, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.prepare_runs(pick holdfast.pick, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION prunable(most integer); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.prunable(most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.prunable(most integer) TO hf_operator;


--
-- Name: FUNCTION prune_rest(sweep holdfast.retention_sweep, batch integer, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.prune_rest(sweep holdfast.retention_sweep, batch integer, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION prune_rest_of_run(sweep holdfast.retention_sweep, batch integer); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.prune_rest_of_run(sweep holdfast.retention_sweep, batch integer) FROM PUBLIC;


--
-- Name: FUNCTION prune_runs(sweep holdfast.retention_sweep, batch integer, youngest timestamp with time zone, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.prune_runs(sweep holdfast.retention_sweep, batch integer, youngest timestamp with time zone, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION prune_steps(sweep holdfast.retention_sweep, batch integer, youngest timestamp with time zone, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.prune_steps(sweep holdfast.retention_sweep, batch integer, youngest timestamp with time zone, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION prune_ticks(sweep holdfast.retention_sweep, batch integer, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.prune_ticks(sweep holdfast.retention_sweep, batch integer, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION pruned(of_id text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.pruned(of_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.pruned(of_id text) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.pruned(of_id text) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.pruned(of_id text) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.pruned(of_id text) TO hf_operator;


--
-- Name: FUNCTION pull_parked(queue text, priority integer, kinds text[], tenants text[], machine text, wanted integer, full_ids bigint[], taken bigint[], clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.pull_parked(queue text, priority integer, kinds text[], tenants text[], machine text, wanted integer, full_ids bigint[], taken bigint[], clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION record_missed(schedule holdfast.schedules, missed timestamp with time zone[], ticks integer, until_at timestamp with time zone, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.record_missed(schedule holdfast.schedules, missed timestamp with time zone[], ticks integer, until_at timestamp with time zone, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION record_tick(schedule holdfast.schedules, at timestamp with time zone, clock timestamp with time zone, outcome text, ids text[], cancelled text[], error jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.record_tick(schedule holdfast.schedules, at timestamp with time zone, clock timestamp with time zone, outcome text, ids text[], cancelled text[], error jsonb) FROM PUBLIC;


--
-- Name: FUNCTION record_worker(worker text, queue text, kinds text[], tenants text[], machine text, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.record_worker(worker text, queue text, kinds text[], tenants text[], machine text, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION refresh_limits(ids bigint[], clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.refresh_limits(ids bigint[], clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION refund_steps(ids bigint[], clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.refund_steps(ids bigint[], clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION refuse(code text, message text, hint text, field text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.refuse(code text, message text, hint text, field text) FROM PUBLIC;


--
-- Name: FUNCTION refuse_change(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.refuse_change() FROM PUBLIC;


--
-- Name: FUNCTION refuse_move(machine text, from_state text, event text, to_state text, actor_kind text, subject text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.refuse_move(machine text, from_state text, event text, to_state text, actor_kind text, subject text) FROM PUBLIC;


--
-- Name: FUNCTION refuse_options(face text, options jsonb, known text[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.refuse_options(face text, options jsonb, known text[]) FROM PUBLIC;


--
-- Name: FUNCTION refuse_pruned(id text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.refuse_pruned(id text) FROM PUBLIC;


--
-- Name: FUNCTION refuse_renumbering(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.refuse_renumbering() FROM PUBLIC;


--
-- Name: FUNCTION refuse_worker(worker text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.refuse_worker(worker text) FROM PUBLIC;


--
-- Name: FUNCTION release_event(step holdfast.steps); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.release_event(step holdfast.steps) FROM PUBLIC;


--
-- Name: FUNCTION remember_position(place text, last holdfast.due_position, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.remember_position(place text, last holdfast.due_position, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION remember_pruned_runs(ids uuid[], rules text[], clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.remember_pruned_runs(ids uuid[], rules text[], clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION remember_pruned_steps(ids bigint[], rules text[], clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.remember_pruned_steps(ids bigint[], rules text[], clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION remember_queues(queues text[], priorities integer[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.remember_queues(queues text[], priorities integer[]) FROM PUBLIC;


--
-- Name: FUNCTION renew_leases(worker text, lease_ids bigint[], lease interval, step_ids bigint[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.renew_leases(worker text, lease_ids bigint[], lease interval, step_ids bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.renew_leases(worker text, lease_ids bigint[], lease interval, step_ids bigint[]) TO hf_worker;


--
-- Name: FUNCTION reopen_failed(ids bigint[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.reopen_failed(ids bigint[]) FROM PUBLIC;


--
-- Name: FUNCTION reopen_run(run_id uuid, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.reopen_run(run_id uuid, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION report_on(step holdfast.steps, lease interval, is_started boolean, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.report_on(step holdfast.steps, lease interval, is_started boolean, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION rescue_steps(batch integer); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.rescue_steps(batch integer) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.rescue_steps(batch integer) TO hf_worker;


--
-- Name: FUNCTION reserve_step_ids(amount integer); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.reserve_step_ids(amount integer) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.reserve_step_ids(amount integer) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.reserve_step_ids(amount integer) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.reserve_step_ids(amount integer) TO hf_operator;


--
-- Name: FUNCTION reset_limit(name text, tenant text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.reset_limit(name text, tenant text, actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.reset_limit(name text, tenant text, actor text) TO hf_operator;


--
-- Name: FUNCTION resolve(id text, reason text, result jsonb, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.resolve(id text, reason text, result jsonb, actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.resolve(id text, reason text, result jsonb, actor text) TO hf_operator;


--
-- Name: FUNCTION resume_limit(name text, reason text, tenant text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.resume_limit(name text, reason text, tenant text, actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.resume_limit(name text, reason text, tenant text, actor text) TO hf_operator;


--
-- Name: FUNCTION resume_queue(queue text, reason text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.resume_queue(queue text, reason text, actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.resume_queue(queue text, reason text, actor text) TO hf_operator;


--
-- Name: FUNCTION resume_schedule(name text, reason text, tenant text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.resume_schedule(name text, reason text, tenant text, actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.resume_schedule(name text, reason text, tenant text, actor text) TO hf_operator;


--
-- Name: FUNCTION retention_rule(machine text, queue text, outcome text, tenant text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.retention_rule(machine text, queue text, outcome text, tenant text) FROM PUBLIC;


--
-- Name: FUNCTION retention_tenants(what text, tenant text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.retention_tenants(what text, tenant text) FROM PUBLIC;


--
-- Name: FUNCTION retention_violations(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.retention_violations() FROM PUBLIC;


--
-- Name: FUNCTION retire_worker(worker text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.retire_worker(worker text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.retire_worker(worker text) TO hf_worker;


--
-- Name: FUNCTION retry(id text, reason text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.retry(id text, reason text, actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.retry(id text, reason text, actor text) TO hf_operator;


--
-- Name: FUNCTION rule_text(rule holdfast.retention_rules); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.rule_text(rule holdfast.retention_rules) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.rule_text(rule holdfast.retention_rules) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.rule_text(rule holdfast.retention_rules) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.rule_text(rule holdfast.retention_rules) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.rule_text(rule holdfast.retention_rules) TO hf_operator;


--
-- Name: FUNCTION run_events(of_run uuid); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.run_events(of_run uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.run_events(of_run uuid) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.run_events(of_run uuid) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.run_events(of_run uuid) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.run_events(of_run uuid) TO hf_operator;


--
-- Name: FUNCTION run_results(run_ids uuid[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.run_results(run_ids uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.run_results(run_ids uuid[]) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.run_results(run_ids uuid[]) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.run_results(run_ids uuid[]) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.run_results(run_ids uuid[]) TO hf_operator;


--
-- Name: FUNCTION run_schedule(name text, reason text, tenant text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.run_schedule(name text, reason text, tenant text, actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.run_schedule(name text, reason text, tenant text, actor text) TO hf_operator;


--
-- Name: FUNCTION run_status(run_ids uuid[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.run_status(run_ids uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.run_status(run_ids uuid[]) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.run_status(run_ids uuid[]) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.run_status(run_ids uuid[]) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.run_status(run_ids uuid[]) TO hf_operator;


--
-- Name: FUNCTION schedule_definition(schedule holdfast.schedules); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.schedule_definition(schedule holdfast.schedules) FROM PUBLIC;


--
-- Name: FUNCTION schedule_shift(tenant text, name text, spread interval); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.schedule_shift(tenant text, name text, spread interval) FROM PUBLIC;


--
-- Name: FUNCTION schedule_to_change(name text, tenant text, reason text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.schedule_to_change(name text, tenant text, reason text, actor text) FROM PUBLIC;


--
-- Name: FUNCTION schedule_violations(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.schedule_violations() FROM PUBLIC;


--
-- Name: FUNCTION set_actor(kind text, name text, reason text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.set_actor(kind text, name text, reason text) FROM PUBLIC;


--
-- Name: FUNCTION set_pause(name text, tenants text[], until timestamp with time zone, actor text, reason text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.set_pause(name text, tenants text[], until timestamp with time zone, actor text, reason text) FROM PUBLIC;


--
-- Name: FUNCTION set_retention(keep interval, outcome text, machine text, queue text, tenant text, what text, reason text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.set_retention(keep interval, outcome text, machine text, queue text, tenant text, what text, reason text, actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.set_retention(keep interval, outcome text, machine text, queue text, tenant text, what text, reason text, actor text) TO hf_operator;


--
-- Name: FUNCTION set_retry_budget(step holdfast.steps, tries integer, retryable boolean, backoff interval); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.set_retry_budget(step holdfast.steps, tries integer, retryable boolean, backoff interval) FROM PUBLIC;


--
-- Name: FUNCTION settle_batch(step_ids bigint[], lease_ids bigint[], results jsonb[], others jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.settle_batch(step_ids bigint[], lease_ids bigint[], results jsonb[], others jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.settle_batch(step_ids bigint[], lease_ids bigint[], results jsonb[], others jsonb) TO hf_worker;


--
-- Name: FUNCTION settle_others(outcomes jsonb, allowed text[], clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.settle_others(outcomes jsonb, allowed text[], clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION settle_steps(outcomes jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.settle_steps(outcomes jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.settle_steps(outcomes jsonb) TO hf_worker;


--
-- Name: FUNCTION shortest_keep(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.shortest_keep() FROM PUBLIC;


--
-- Name: FUNCTION stage_steps(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.stage_steps() FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.stage_steps() TO hf_producer;
GRANT ALL ON FUNCTION holdfast.stage_steps() TO hf_worker;
GRANT ALL ON FUNCTION holdfast.stage_steps() TO hf_operator;


--
-- Name: FUNCTION start_run(machine text, name text, step_machine text, steps jsonb, input jsonb, key text, tenant text, of_run uuid, key_for interval); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.start_run(machine text, name text, step_machine text, steps jsonb, input jsonb, key text, tenant text, of_run uuid, key_for interval) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.start_run(machine text, name text, step_machine text, steps jsonb, input jsonb, key text, tenant text, of_run uuid, key_for interval) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.start_run(machine text, name text, step_machine text, steps jsonb, input jsonb, key text, tenant text, of_run uuid, key_for interval) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.start_run(machine text, name text, step_machine text, steps jsonb, input jsonb, key text, tenant text, of_run uuid, key_for interval) TO hf_operator;


--
-- Name: FUNCTION start_silent_steps(moves holdfast.step_move[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.start_silent_steps(moves holdfast.step_move[]) FROM PUBLIC;


--
-- Name: FUNCTION start_step(machine text, kind text, input jsonb, queue text, key text, unique_key text, due_at timestamp with time zone, priority integer, tenant text, policy text, parked_for text, actor text, limits text[], weight numeric, key_for interval); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.start_step(machine text, kind text, input jsonb, queue text, key text, unique_key text, due_at timestamp with time zone, priority integer, tenant text, policy text, parked_for text, actor text, limits text[], weight numeric, key_for interval) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.start_step(machine text, kind text, input jsonb, queue text, key text, unique_key text, due_at timestamp with time zone, priority integer, tenant text, policy text, parked_for text, actor text, limits text[], weight numeric, key_for interval) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.start_step(machine text, kind text, input jsonb, queue text, key text, unique_key text, due_at timestamp with time zone, priority integer, tenant text, policy text, parked_for text, actor text, limits text[], weight numeric, key_for interval) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.start_step(machine text, kind text, input jsonb, queue text, key text, unique_key text, due_at timestamp with time zone, priority integer, tenant text, policy text, parked_for text, actor text, limits text[], weight numeric, key_for interval) TO hf_operator;


--
-- Name: FUNCTION start_task(name text, input jsonb, queue text, key text, unique_key text, due_at timestamp with time zone, priority integer, tenant text, limits text[], weight numeric, key_for interval); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.start_task(name text, input jsonb, queue text, key text, unique_key text, due_at timestamp with time zone, priority integer, tenant text, limits text[], weight numeric, key_for interval) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.start_task(name text, input jsonb, queue text, key text, unique_key text, due_at timestamp with time zone, priority integer, tenant text, limits text[], weight numeric, key_for interval) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.start_task(name text, input jsonb, queue text, key text, unique_key text, due_at timestamp with time zone, priority integer, tenant text, limits text[], weight numeric, key_for interval) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.start_task(name text, input jsonb, queue text, key text, unique_key text, due_at timestamp with time zone, priority integer, tenant text, limits text[], weight numeric, key_for interval) TO hf_operator;


--
-- Name: FUNCTION start_tasks(tasks jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.start_tasks(tasks jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.start_tasks(tasks jsonb) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.start_tasks(tasks jsonb) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.start_tasks(tasks jsonb) TO hf_operator;


--
-- Name: FUNCTION start_tick(schedule holdfast.schedules, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.start_tick(schedule holdfast.schedules, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION started_ids(schedule holdfast.schedules); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.started_ids(schedule holdfast.schedules) FROM PUBLIC;


--
-- Name: FUNCTION step_events(of_step bigint); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.step_events(of_step bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.step_events(of_step bigint) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.step_events(of_step bigint) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.step_events(of_step bigint) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.step_events(of_step bigint) TO hf_operator;


--
-- Name: FUNCTION step_results(step_ids bigint[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.step_results(step_ids bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.step_results(step_ids bigint[]) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.step_results(step_ids bigint[]) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.step_results(step_ids bigint[]) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.step_results(step_ids bigint[]) TO hf_operator;


--
-- Name: FUNCTION step_status(step_ids bigint[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.step_status(step_ids bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.step_status(step_ids bigint[]) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.step_status(step_ids bigint[]) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.step_status(step_ids bigint[]) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.step_status(step_ids bigint[]) TO hf_operator;


--
-- Name: FUNCTION store_plan(schedule holdfast.schedules, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.store_plan(schedule holdfast.schedules, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION succeed_steps(step_ids bigint[], lease_ids bigint[], results jsonb[], allowed text[], clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.succeed_steps(step_ids bigint[], lease_ids bigint[], results jsonb[], allowed text[], clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION sweep(batch integer); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.sweep(batch integer) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.sweep(batch integer) TO hf_worker;


--
-- Name: FUNCTION sweep_chunk(batch integer, at_once boolean); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.sweep_chunk(batch integer, at_once boolean) FROM PUBLIC;


--
-- Name: FUNCTION sweep_now(batch integer, afresh boolean); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.sweep_now(batch integer, afresh boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.sweep_now(batch integer, afresh boolean) TO hf_operator;


--
-- Name: FUNCTION sweep_state(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.sweep_state() FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.sweep_state() TO hf_producer;
GRANT ALL ON FUNCTION holdfast.sweep_state() TO hf_worker;
GRANT ALL ON FUNCTION holdfast.sweep_state() TO hf_reader;
GRANT ALL ON FUNCTION holdfast.sweep_state() TO hf_operator;


--
-- Name: FUNCTION take_key(tenant text, key text, id text, hash bytea, key_for interval); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.take_key(tenant text, key text, id text, hash bytea, key_for interval) FROM PUBLIC;


--
-- Name: FUNCTION take_staged(machine text, run_id uuid, tenant text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.take_staged(machine text, run_id uuid, tenant text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.take_staged(machine text, run_id uuid, tenant text) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.take_staged(machine text, run_id uuid, tenant text) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.take_staged(machine text, run_id uuid, tenant text) TO hf_operator;


--
-- Name: FUNCTION tally_runs(deltas holdfast.run_delta[], clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.tally_runs(deltas holdfast.run_delta[], clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION tenants_to_define(what text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.tenants_to_define(what text) FROM PUBLIC;


--
-- Name: FUNCTION tick_before(anchor timestamp with time zone, every interval, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.tick_before(anchor timestamp with time zone, every interval, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION tokens_at(state holdfast.limit_states, rule holdfast.limits, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.tokens_at(state holdfast.limit_states, rule holdfast.limits, clock timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.tokens_at(state holdfast.limit_states, rule holdfast.limits, clock timestamp with time zone) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.tokens_at(state holdfast.limit_states, rule holdfast.limits, clock timestamp with time zone) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.tokens_at(state holdfast.limit_states, rule holdfast.limits, clock timestamp with time zone) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.tokens_at(state holdfast.limit_states, rule holdfast.limits, clock timestamp with time zone) TO hf_operator;


--
-- Name: FUNCTION tokens_suffice_at(state holdfast.limit_states, rule holdfast.limits, charge numeric, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.tokens_suffice_at(state holdfast.limit_states, rule holdfast.limits, charge numeric, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION too_large(what text, value jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.too_large(what text, value jsonb) FROM PUBLIC;


--
-- Name: FUNCTION unpark_served(queue text, kinds text[], tenants text[], machine text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.unpark_served(queue text, kinds text[], tenants text[], machine text) FROM PUBLIC;


--
-- Name: FUNCTION unpark_steps(ids bigint[], reason text, actor text); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.unpark_steps(ids bigint[], reason text, actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.unpark_steps(ids bigint[], reason text, actor text) TO hf_operator;


--
-- Name: FUNCTION upkeep(batch integer, worker text, about jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.upkeep(batch integer, worker text, about jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.upkeep(batch integer, worker text, about jsonb) TO hf_worker;


--
-- Name: FUNCTION uuid7(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.uuid7() FROM PUBLIC;


--
-- Name: FUNCTION violations(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.violations() FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.violations() TO hf_operator;


--
-- Name: FUNCTION wake(queues text[]); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.wake(queues text[]) FROM PUBLIC;


--
-- Name: FUNCTION wake_for_schedules(); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.wake_for_schedules() FROM PUBLIC;


--
-- Name: FUNCTION weight_for(given numeric, template text, call_weight numeric, input jsonb); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.weight_for(given numeric, template text, call_weight numeric, input jsonb) FROM PUBLIC;


--
-- Name: FUNCTION with_ticks(schedule holdfast.schedules, ticks timestamp with time zone[], is_all boolean); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.with_ticks(schedule holdfast.schedules, ticks timestamp with time zone[], is_all boolean) FROM PUBLIC;


--
-- Name: FUNCTION worker_standing(seen_at timestamp with time zone, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.worker_standing(seen_at timestamp with time zone, clock timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION holdfast.worker_standing(seen_at timestamp with time zone, clock timestamp with time zone) TO hf_producer;
GRANT ALL ON FUNCTION holdfast.worker_standing(seen_at timestamp with time zone, clock timestamp with time zone) TO hf_worker;
GRANT ALL ON FUNCTION holdfast.worker_standing(seen_at timestamp with time zone, clock timestamp with time zone) TO hf_reader;
GRANT ALL ON FUNCTION holdfast.worker_standing(seen_at timestamp with time zone, clock timestamp with time zone) TO hf_operator;


--
-- Name: FUNCTION write_note(step holdfast.steps, level text, message text, payload jsonb, key text, clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.write_note(step holdfast.steps, level text, message text, payload jsonb, key text, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION write_notes(step holdfast.steps, levels text[], messages text[], payloads jsonb[], keys text[], clock timestamp with time zone); Type: ACL; Schema: holdfast; Owner: -
--

REVOKE ALL ON FUNCTION holdfast.write_notes(step holdfast.steps, levels text[], messages text[], payloads jsonb[], keys text[], clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION add_artifact(p_run_id text, p_type text, p_url text, p_digest text, p_size_bytes bigint, p_metadata jsonb, p_worker_id text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.add_artifact(p_run_id text, p_type text, p_url text, p_digest text, p_size_bytes bigint, p_metadata jsonb, p_worker_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.add_artifact(p_run_id text, p_type text, p_url text, p_digest text, p_size_bytes bigint, p_metadata jsonb, p_worker_id text) TO hf_worker;


--
-- Name: TABLE run_facts; Type: ACL; Schema: ops; Owner: -
--

GRANT SELECT ON TABLE ops.run_facts TO hf_producer;
GRANT SELECT ON TABLE ops.run_facts TO hf_worker;
GRANT SELECT ON TABLE ops.run_facts TO hf_reader;
GRANT SELECT ON TABLE ops.run_facts TO hf_operator;


--
-- Name: FUNCTION again(old ops.run_facts, source ops.run_facts, link text, reason text, actor text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.again(old ops.run_facts, source ops.run_facts, link text, reason text, actor text) FROM PUBLIC;


--
-- Name: FUNCTION append_event(p_run_id text, p_level text, p_message text, p_payload jsonb, p_event_key text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.append_event(p_run_id text, p_level text, p_message text, p_payload jsonb, p_event_key text) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.append_event(p_run_id text, p_level text, p_message text, p_payload jsonb, p_event_key text) TO hf_worker;


--
-- Name: FUNCTION append_output(step_id bigint, lease_id bigint, levels text[], messages text[], payloads jsonb[], keys text[]); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.append_output(step_id bigint, lease_id bigint, levels text[], messages text[], payloads jsonb[], keys text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.append_output(step_id bigint, lease_id bigint, levels text[], messages text[], payloads jsonb[], keys text[]) TO hf_worker;


--
-- Name: FUNCTION begin_run(project_id text, env text, git_sha text, git_ref text, metadata jsonb, key text, options jsonb, actor text, tenant text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.begin_run(project_id text, env text, git_sha text, git_ref text, metadata jsonb, key text, options jsonb, actor text, tenant text) FROM PUBLIC;


--
-- Name: FUNCTION cancel_if_stale(p_run_id text, p_metadata jsonb); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.cancel_if_stale(p_run_id text, p_metadata jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.cancel_if_stale(p_run_id text, p_metadata jsonb) TO hf_worker;
GRANT ALL ON FUNCTION ops.cancel_if_stale(p_run_id text, p_metadata jsonb) TO hf_operator;


--
-- Name: FUNCTION cancel_open(ids text[], reason text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.cancel_open(ids text[], reason text) FROM PUBLIC;


--
-- Name: FUNCTION cancel_run(p_run_id text, p_reason text, p_actor text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.cancel_run(p_run_id text, p_reason text, p_actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.cancel_run(p_run_id text, p_reason text, p_actor text) TO hf_producer;
GRANT ALL ON FUNCTION ops.cancel_run(p_run_id text, p_reason text, p_actor text) TO hf_operator;


--
-- Name: FUNCTION cancel_stale_runs(); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.cancel_stale_runs() FROM PUBLIC;
GRANT ALL ON FUNCTION ops.cancel_stale_runs() TO hf_worker;
GRANT ALL ON FUNCTION ops.cancel_stale_runs() TO hf_operator;


--
-- Name: FUNCTION check_worker(facts ops.run_facts, worker text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.check_worker(facts ops.run_facts, worker text) FROM PUBLIC;


--
-- Name: FUNCTION checked_metadata(metadata jsonb); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.checked_metadata(metadata jsonb) FROM PUBLIC;


--
-- Name: FUNCTION claim_next_run(p_worker_id text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.claim_next_run(p_worker_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.claim_next_run(p_worker_id text) TO hf_worker;


--
-- Name: FUNCTION decide_approval(p_run_id text, p_decision text, p_reason text, p_actor text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.decide_approval(p_run_id text, p_decision text, p_reason text, p_actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.decide_approval(p_run_id text, p_decision text, p_reason text, p_actor text) TO hf_operator;


--
-- Name: FUNCTION define_environment(p_project_id text, p_env text, p_type text, p_branch_pattern text, p_needs_approval boolean, p_on_push text, p_concurrency integer, p_queue_ttl interval, p_kind text, p_tenant text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.define_environment(p_project_id text, p_env text, p_type text, p_branch_pattern text, p_needs_approval boolean, p_on_push text, p_concurrency integer, p_queue_ttl interval, p_kind text, p_tenant text) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.define_environment(p_project_id text, p_env text, p_type text, p_branch_pattern text, p_needs_approval boolean, p_on_push text, p_concurrency integer, p_queue_ttl interval, p_kind text, p_tenant text) TO hf_operator;


--
-- Name: FUNCTION define_project(p_project_id text, p_repository text, p_tenant text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.define_project(p_project_id text, p_repository text, p_tenant text) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.define_project(p_project_id text, p_repository text, p_tenant text) TO hf_operator;


--
-- Name: FUNCTION end_run(step holdfast.steps, status text, given jsonb, worker text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.end_run(step holdfast.steps, status text, given jsonb, worker text) FROM PUBLIC;


--
-- Name: FUNCTION event_id(number bigint); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.event_id(number bigint) FROM PUBLIC;


--
-- Name: FUNCTION expire_runs(clock timestamp with time zone, tenants text[]); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.expire_runs(clock timestamp with time zone, tenants text[]) FROM PUBLIC;


--
-- Name: FUNCTION finish_run(p_run_id text, p_status text, p_metadata jsonb, p_worker_id text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.finish_run(p_run_id text, p_status text, p_metadata jsonb, p_worker_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.finish_run(p_run_id text, p_status text, p_metadata jsonb, p_worker_id text) TO hf_worker;


--
-- Name: FUNCTION heartbeat(p_run_id text, p_worker_id text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.heartbeat(p_run_id text, p_worker_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.heartbeat(p_run_id text, p_worker_id text) TO hf_worker;


--
-- Name: FUNCTION held_run(step_id bigint, lease_id bigint); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.held_run(step_id bigint, lease_id bigint) FROM PUBLIC;


--
-- Name: FUNCTION is_any_open(ids text[]); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.is_any_open(ids text[]) FROM PUBLIC;


--
-- Name: FUNCTION lock_run(run_id text, OUT step holdfast.steps, OUT facts ops.run_facts); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.lock_run(run_id text, OUT step holdfast.steps, OUT facts ops.run_facts) FROM PUBLIC;


--
-- Name: FUNCTION matches_branch(pattern text, ref text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.matches_branch(pattern text, ref text) FROM PUBLIC;


--
-- Name: TABLE known_environments; Type: ACL; Schema: ops; Owner: -
--

GRANT SELECT ON TABLE ops.known_environments TO hf_producer;
GRANT SELECT ON TABLE ops.known_environments TO hf_worker;
GRANT SELECT ON TABLE ops.known_environments TO hf_reader;
GRANT SELECT ON TABLE ops.known_environments TO hf_operator;


--
-- Name: FUNCTION new_environment(tenant text, project_id text, name text, actor text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.new_environment(tenant text, project_id text, name text, actor text) FROM PUBLIC;


--
-- Name: TABLE run_approvals; Type: ACL; Schema: ops; Owner: -
--

GRANT SELECT ON TABLE ops.run_approvals TO hf_producer;
GRANT SELECT ON TABLE ops.run_approvals TO hf_worker;
GRANT SELECT ON TABLE ops.run_approvals TO hf_reader;
GRANT SELECT ON TABLE ops.run_approvals TO hf_operator;


--
-- Name: TABLE run_artifacts; Type: ACL; Schema: ops; Owner: -
--

GRANT SELECT ON TABLE ops.run_artifacts TO hf_producer;
GRANT SELECT ON TABLE ops.run_artifacts TO hf_worker;
GRANT SELECT ON TABLE ops.run_artifacts TO hf_reader;
GRANT SELECT ON TABLE ops.run_artifacts TO hf_operator;


--
-- Name: FUNCTION prune_facts(step_ids bigint[], run_ids uuid[]); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.prune_facts(step_ids bigint[], run_ids uuid[]) FROM PUBLIC;


--
-- Name: FUNCTION queue_push(p_repository text, p_git_ref text, p_git_sha text, p_metadata jsonb, p_idempotency_key text, p_actor text, p_tenant text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.queue_push(p_repository text, p_git_ref text, p_git_sha text, p_metadata jsonb, p_idempotency_key text, p_actor text, p_tenant text) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.queue_push(p_repository text, p_git_ref text, p_git_sha text, p_metadata jsonb, p_idempotency_key text, p_actor text, p_tenant text) TO hf_producer;
GRANT ALL ON FUNCTION ops.queue_push(p_repository text, p_git_ref text, p_git_sha text, p_metadata jsonb, p_idempotency_key text, p_actor text, p_tenant text) TO hf_worker;
GRANT ALL ON FUNCTION ops.queue_push(p_repository text, p_git_ref text, p_git_sha text, p_metadata jsonb, p_idempotency_key text, p_actor text, p_tenant text) TO hf_operator;


--
-- Name: FUNCTION queue_run(p_project_id text, p_env text, p_git_sha text, p_git_ref text, p_metadata jsonb, p_idempotency_key text, p_kind text, p_priority integer, p_due_at timestamp with time zone, p_ttl interval, p_actor text, p_tenant text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.queue_run(p_project_id text, p_env text, p_git_sha text, p_git_ref text, p_metadata jsonb, p_idempotency_key text, p_kind text, p_priority integer, p_due_at timestamp with time zone, p_ttl interval, p_actor text, p_tenant text) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.queue_run(p_project_id text, p_env text, p_git_sha text, p_git_ref text, p_metadata jsonb, p_idempotency_key text, p_kind text, p_priority integer, p_due_at timestamp with time zone, p_ttl interval, p_actor text, p_tenant text) TO hf_producer;
GRANT ALL ON FUNCTION ops.queue_run(p_project_id text, p_env text, p_git_sha text, p_git_ref text, p_metadata jsonb, p_idempotency_key text, p_kind text, p_priority integer, p_due_at timestamp with time zone, p_ttl interval, p_actor text, p_tenant text) TO hf_worker;
GRANT ALL ON FUNCTION ops.queue_run(p_project_id text, p_env text, p_git_sha text, p_git_ref text, p_metadata jsonb, p_idempotency_key text, p_kind text, p_priority integer, p_due_at timestamp with time zone, p_ttl interval, p_actor text, p_tenant text) TO hf_operator;


--
-- Name: FUNCTION record_delivery(p_source text, p_delivery text, p_event text, p_outcome text, p_repository text, p_git_ref text, p_git_sha text, p_run_ids text[], p_tenant text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.record_delivery(p_source text, p_delivery text, p_event text, p_outcome text, p_repository text, p_git_ref text, p_git_sha text, p_run_ids text[], p_tenant text) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.record_delivery(p_source text, p_delivery text, p_event text, p_outcome text, p_repository text, p_git_ref text, p_git_sha text, p_run_ids text[], p_tenant text) TO hf_producer;
GRANT ALL ON FUNCTION ops.record_delivery(p_source text, p_delivery text, p_event text, p_outcome text, p_repository text, p_git_ref text, p_git_sha text, p_run_ids text[], p_tenant text) TO hf_worker;
GRANT ALL ON FUNCTION ops.record_delivery(p_source text, p_delivery text, p_event text, p_outcome text, p_repository text, p_git_ref text, p_git_sha text, p_run_ids text[], p_tenant text) TO hf_operator;


--
-- Name: FUNCTION record_moves(moves holdfast.shared_move[]); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.record_moves(moves holdfast.shared_move[]) FROM PUBLIC;


--
-- Name: FUNCTION refuse_request(project_id text, env text, kind text, git_sha text, git_ref text, key text, actor text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.refuse_request(project_id text, env text, kind text, git_sha text, git_ref text, key text, actor text) FROM PUBLIC;


--
-- Name: FUNCTION refuse_write(); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.refuse_write() FROM PUBLIC;


--
-- Name: FUNCTION register_environment(tenant text, project_id text, name text, actor text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.register_environment(tenant text, project_id text, name text, actor text) FROM PUBLIC;


--
-- Name: FUNCTION repeated_event(step_id bigint, level text, message text, key text, clock timestamp with time zone); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.repeated_event(step_id bigint, level text, message text, key text, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION retry_in_place(step_id bigint, lease_id bigint, executions integer, error text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.retry_in_place(step_id bigint, lease_id bigint, executions integer, error text) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.retry_in_place(step_id bigint, lease_id bigint, executions integer, error text) TO hf_worker;


--
-- Name: FUNCTION retry_run(p_run_id text, p_reason text, p_actor text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.retry_run(p_run_id text, p_reason text, p_actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.retry_run(p_run_id text, p_reason text, p_actor text) TO hf_producer;
GRANT ALL ON FUNCTION ops.retry_run(p_run_id text, p_reason text, p_actor text) TO hf_operator;


--
-- Name: FUNCTION retry_step(id text, reason text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.retry_step(id text, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.retry_step(id text, reason text) TO hf_producer;
GRANT ALL ON FUNCTION ops.retry_step(id text, reason text) TO hf_operator;


--
-- Name: FUNCTION rollback_run(p_run_id text, p_reason text, p_actor text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.rollback_run(p_run_id text, p_reason text, p_actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.rollback_run(p_run_id text, p_reason text, p_actor text) TO hf_producer;
GRANT ALL ON FUNCTION ops.rollback_run(p_run_id text, p_reason text, p_actor text) TO hf_operator;


--
-- Name: FUNCTION set_strict_projects(p_is_strict boolean, p_tenant text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.set_strict_projects(p_is_strict boolean, p_tenant text) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.set_strict_projects(p_is_strict boolean, p_tenant text) TO hf_operator;


--
-- Name: FUNCTION stale_reason(status text, started_at timestamp with time zone, clock timestamp with time zone); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.stale_reason(status text, started_at timestamp with time zone, clock timestamp with time zone) FROM PUBLIC;


--
-- Name: FUNCTION start_for_tick(target text, input jsonb, options jsonb, tenant text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.start_for_tick(target text, input jsonb, options jsonb, tenant text) FROM PUBLIC;


--
-- Name: FUNCTION step_of_run(run_id text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.step_of_run(run_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.step_of_run(run_id text) TO hf_producer;
GRANT ALL ON FUNCTION ops.step_of_run(run_id text) TO hf_worker;
GRANT ALL ON FUNCTION ops.step_of_run(run_id text) TO hf_reader;
GRANT ALL ON FUNCTION ops.step_of_run(run_id text) TO hf_operator;


--
-- Name: FUNCTION supersede(facts ops.run_facts, on_push text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.supersede(facts ops.run_facts, on_push text) FROM PUBLIC;


--
-- Name: FUNCTION sweep_runs(p_tenant text); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.sweep_runs(p_tenant text) FROM PUBLIC;
GRANT ALL ON FUNCTION ops.sweep_runs(p_tenant text) TO hf_worker;
GRANT ALL ON FUNCTION ops.sweep_runs(p_tenant text) TO hf_operator;


--
-- Name: FUNCTION take_stale_update(); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.take_stale_update() FROM PUBLIC;


--
-- Name: FUNCTION violations(); Type: ACL; Schema: ops; Owner: -
--

REVOKE ALL ON FUNCTION ops.violations() FROM PUBLIC;


--
-- Name: FUNCTION cancel_open(ids text[], reason text); Type: ACL; Schema: work; Owner: -
--

REVOKE ALL ON FUNCTION work.cancel_open(ids text[], reason text) FROM PUBLIC;


--
-- Name: TABLE journal; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.journal TO hf_producer;
GRANT SELECT ON TABLE holdfast.journal TO hf_worker;
GRANT SELECT ON TABLE holdfast.journal TO hf_reader;
GRANT SELECT ON TABLE holdfast.journal TO hf_operator;


--
-- Name: TABLE note_keys; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.note_keys TO hf_producer;
GRANT SELECT ON TABLE holdfast.note_keys TO hf_worker;
GRANT SELECT ON TABLE holdfast.note_keys TO hf_reader;
GRANT SELECT ON TABLE holdfast.note_keys TO hf_operator;


--
-- Name: TABLE notes; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.notes TO hf_producer;
GRANT SELECT ON TABLE holdfast.notes TO hf_worker;
GRANT SELECT ON TABLE holdfast.notes TO hf_reader;
GRANT SELECT ON TABLE holdfast.notes TO hf_operator;


--
-- Name: TABLE tasks; Type: ACL; Schema: work; Owner: -
--

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE work.tasks TO hf_producer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE work.tasks TO hf_worker;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE work.tasks TO hf_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE work.tasks TO hf_operator;


--
-- Name: FUNCTION claim_next_task(worker text, types text[], queue text, lease interval); Type: ACL; Schema: work; Owner: -
--

REVOKE ALL ON FUNCTION work.claim_next_task(worker text, types text[], queue text, lease interval) FROM PUBLIC;
GRANT ALL ON FUNCTION work.claim_next_task(worker text, types text[], queue text, lease interval) TO hf_worker;


--
-- Name: FUNCTION is_any_open(ids text[]); Type: ACL; Schema: work; Owner: -
--

REVOKE ALL ON FUNCTION work.is_any_open(ids text[]) FROM PUBLIC;


--
-- Name: FUNCTION recover_expired_leases(batch integer); Type: ACL; Schema: work; Owner: -
--

REVOKE ALL ON FUNCTION work.recover_expired_leases(batch integer) FROM PUBLIC;
GRANT ALL ON FUNCTION work.recover_expired_leases(batch integer) TO hf_worker;


--
-- Name: FUNCTION refuse_write(); Type: ACL; Schema: work; Owner: -
--

REVOKE ALL ON FUNCTION work.refuse_write() FROM PUBLIC;


--
-- Name: FUNCTION start_for_tick(target text, input jsonb, options jsonb, tenant text); Type: ACL; Schema: work; Owner: -
--

REVOKE ALL ON FUNCTION work.start_for_tick(target text, input jsonb, options jsonb, tenant text) FROM PUBLIC;


--
-- Name: TABLE step_dag; Type: ACL; Schema: flow; Owner: -
--

GRANT SELECT ON TABLE flow.step_dag TO hf_producer;
GRANT SELECT ON TABLE flow.step_dag TO hf_worker;
GRANT SELECT ON TABLE flow.step_dag TO hf_reader;
GRANT SELECT ON TABLE flow.step_dag TO hf_operator;


--
-- Name: TABLE step_templates; Type: ACL; Schema: flow; Owner: -
--

GRANT SELECT ON TABLE flow.step_templates TO hf_producer;
GRANT SELECT ON TABLE flow.step_templates TO hf_worker;
GRANT SELECT ON TABLE flow.step_templates TO hf_reader;
GRANT SELECT ON TABLE flow.step_templates TO hf_operator;


--
-- Name: TABLE step_transitions; Type: ACL; Schema: flow; Owner: -
--

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE flow.step_transitions TO hf_producer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE flow.step_transitions TO hf_worker;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE flow.step_transitions TO hf_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE flow.step_transitions TO hf_operator;


--
-- Name: TABLE steps; Type: ACL; Schema: flow; Owner: -
--

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE flow.steps TO hf_producer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE flow.steps TO hf_worker;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE flow.steps TO hf_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE flow.steps TO hf_operator;


--
-- Name: TABLE task_transitions; Type: ACL; Schema: flow; Owner: -
--

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE flow.task_transitions TO hf_producer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE flow.task_transitions TO hf_worker;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE flow.task_transitions TO hf_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE flow.task_transitions TO hf_operator;


--
-- Name: TABLE tasks; Type: ACL; Schema: flow; Owner: -
--

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE flow.tasks TO hf_producer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE flow.tasks TO hf_worker;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE flow.tasks TO hf_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE flow.tasks TO hf_operator;


--
-- Name: TABLE resolutions; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.resolutions TO hf_producer;
GRANT SELECT ON TABLE holdfast.resolutions TO hf_worker;
GRANT SELECT ON TABLE holdfast.resolutions TO hf_reader;
GRANT SELECT ON TABLE holdfast.resolutions TO hf_operator;


--
-- Name: TABLE dead_steps; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.dead_steps TO hf_producer;
GRANT SELECT ON TABLE holdfast.dead_steps TO hf_worker;
GRANT SELECT ON TABLE holdfast.dead_steps TO hf_reader;
GRANT SELECT ON TABLE holdfast.dead_steps TO hf_operator;


--
-- Name: TABLE installed; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.installed TO hf_producer;
GRANT SELECT ON TABLE holdfast.installed TO hf_worker;
GRANT SELECT ON TABLE holdfast.installed TO hf_reader;
GRANT SELECT ON TABLE holdfast.installed TO hf_operator;


--
-- Name: TABLE limit_list; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.limit_list TO hf_producer;
GRANT SELECT ON TABLE holdfast.limit_list TO hf_worker;
GRANT SELECT ON TABLE holdfast.limit_list TO hf_reader;
GRANT SELECT ON TABLE holdfast.limit_list TO hf_operator;


--
-- Name: TABLE machine_moves; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.machine_moves TO hf_producer;
GRANT SELECT ON TABLE holdfast.machine_moves TO hf_worker;
GRANT SELECT ON TABLE holdfast.machine_moves TO hf_reader;
GRANT SELECT ON TABLE holdfast.machine_moves TO hf_operator;


--
-- Name: TABLE migrations; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.migrations TO hf_producer;
GRANT SELECT ON TABLE holdfast.migrations TO hf_worker;
GRANT SELECT ON TABLE holdfast.migrations TO hf_reader;
GRANT SELECT ON TABLE holdfast.migrations TO hf_operator;


--
-- Name: TABLE queues; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.queues TO hf_producer;
GRANT SELECT ON TABLE holdfast.queues TO hf_worker;
GRANT SELECT ON TABLE holdfast.queues TO hf_reader;
GRANT SELECT ON TABLE holdfast.queues TO hf_operator;


--
-- Name: TABLE queue_list; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.queue_list TO hf_producer;
GRANT SELECT ON TABLE holdfast.queue_list TO hf_worker;
GRANT SELECT ON TABLE holdfast.queue_list TO hf_reader;
GRANT SELECT ON TABLE holdfast.queue_list TO hf_operator;


--
-- Name: TABLE queue_pauses; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.queue_pauses TO hf_producer;
GRANT SELECT ON TABLE holdfast.queue_pauses TO hf_worker;
GRANT SELECT ON TABLE holdfast.queue_pauses TO hf_reader;
GRANT SELECT ON TABLE holdfast.queue_pauses TO hf_operator;


--
-- Name: TABLE retention_changes; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.retention_changes TO hf_producer;
GRANT SELECT ON TABLE holdfast.retention_changes TO hf_worker;
GRANT SELECT ON TABLE holdfast.retention_changes TO hf_reader;
GRANT SELECT ON TABLE holdfast.retention_changes TO hf_operator;


--
-- Name: TABLE retention_list; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.retention_list TO hf_producer;
GRANT SELECT ON TABLE holdfast.retention_list TO hf_worker;
GRANT SELECT ON TABLE holdfast.retention_list TO hf_reader;
GRANT SELECT ON TABLE holdfast.retention_list TO hf_operator;


--
-- Name: TABLE run_list; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.run_list TO hf_producer;
GRANT SELECT ON TABLE holdfast.run_list TO hf_worker;
GRANT SELECT ON TABLE holdfast.run_list TO hf_reader;
GRANT SELECT ON TABLE holdfast.run_list TO hf_operator;


--
-- Name: TABLE schedule_changes; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.schedule_changes TO hf_producer;
GRANT SELECT ON TABLE holdfast.schedule_changes TO hf_worker;
GRANT SELECT ON TABLE holdfast.schedule_changes TO hf_reader;
GRANT SELECT ON TABLE holdfast.schedule_changes TO hf_operator;


--
-- Name: TABLE schedule_list; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.schedule_list TO hf_producer;
GRANT SELECT ON TABLE holdfast.schedule_list TO hf_worker;
GRANT SELECT ON TABLE holdfast.schedule_list TO hf_reader;
GRANT SELECT ON TABLE holdfast.schedule_list TO hf_operator;


--
-- Name: TABLE schedule_ticks; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.schedule_ticks TO hf_producer;
GRANT SELECT ON TABLE holdfast.schedule_ticks TO hf_worker;
GRANT SELECT ON TABLE holdfast.schedule_ticks TO hf_reader;
GRANT SELECT ON TABLE holdfast.schedule_ticks TO hf_operator;


--
-- Name: TABLE step_list; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.step_list TO hf_producer;
GRANT SELECT ON TABLE holdfast.step_list TO hf_worker;
GRANT SELECT ON TABLE holdfast.step_list TO hf_reader;
GRANT SELECT ON TABLE holdfast.step_list TO hf_operator;


--
-- Name: TABLE step_story; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.step_story TO hf_producer;
GRANT SELECT ON TABLE holdfast.step_story TO hf_worker;
GRANT SELECT ON TABLE holdfast.step_story TO hf_reader;
GRANT SELECT ON TABLE holdfast.step_story TO hf_operator;


--
-- Name: TABLE workers; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.workers TO hf_producer;
GRANT SELECT ON TABLE holdfast.workers TO hf_worker;
GRANT SELECT ON TABLE holdfast.workers TO hf_reader;
GRANT SELECT ON TABLE holdfast.workers TO hf_operator;


--
-- Name: TABLE worker_list; Type: ACL; Schema: holdfast; Owner: -
--

GRANT SELECT ON TABLE holdfast.worker_list TO hf_producer;
GRANT SELECT ON TABLE holdfast.worker_list TO hf_worker;
GRANT SELECT ON TABLE holdfast.worker_list TO hf_reader;
GRANT SELECT ON TABLE holdfast.worker_list TO hf_operator;


--
-- Name: TABLE approvals; Type: ACL; Schema: ops; Owner: -
--

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.approvals TO hf_producer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.approvals TO hf_worker;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.approvals TO hf_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.approvals TO hf_operator;


--
-- Name: TABLE artifacts; Type: ACL; Schema: ops; Owner: -
--

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.artifacts TO hf_producer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.artifacts TO hf_worker;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.artifacts TO hf_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.artifacts TO hf_operator;


--
-- Name: TABLE deliveries; Type: ACL; Schema: ops; Owner: -
--

GRANT SELECT ON TABLE ops.deliveries TO hf_producer;
GRANT SELECT ON TABLE ops.deliveries TO hf_worker;
GRANT SELECT ON TABLE ops.deliveries TO hf_reader;
GRANT SELECT ON TABLE ops.deliveries TO hf_operator;


--
-- Name: TABLE environments; Type: ACL; Schema: ops; Owner: -
--

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.environments TO hf_producer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.environments TO hf_worker;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.environments TO hf_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.environments TO hf_operator;


--
-- Name: TABLE event_list; Type: ACL; Schema: ops; Owner: -
--

GRANT SELECT ON TABLE ops.event_list TO hf_producer;
GRANT SELECT ON TABLE ops.event_list TO hf_worker;
GRANT SELECT ON TABLE ops.event_list TO hf_reader;
GRANT SELECT ON TABLE ops.event_list TO hf_operator;


--
-- Name: TABLE known_projects; Type: ACL; Schema: ops; Owner: -
--

GRANT SELECT ON TABLE ops.known_projects TO hf_producer;
GRANT SELECT ON TABLE ops.known_projects TO hf_worker;
GRANT SELECT ON TABLE ops.known_projects TO hf_reader;
GRANT SELECT ON TABLE ops.known_projects TO hf_operator;


--
-- Name: TABLE projects; Type: ACL; Schema: ops; Owner: -
--

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.projects TO hf_producer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.projects TO hf_worker;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.projects TO hf_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.projects TO hf_operator;


--
-- Name: TABLE queue_depth; Type: ACL; Schema: ops; Owner: -
--

GRANT SELECT ON TABLE ops.queue_depth TO hf_producer;
GRANT SELECT ON TABLE ops.queue_depth TO hf_worker;
GRANT SELECT ON TABLE ops.queue_depth TO hf_reader;
GRANT SELECT ON TABLE ops.queue_depth TO hf_operator;


--
-- Name: TABLE run_durations; Type: ACL; Schema: ops; Owner: -
--

GRANT SELECT ON TABLE ops.run_durations TO hf_producer;
GRANT SELECT ON TABLE ops.run_durations TO hf_worker;
GRANT SELECT ON TABLE ops.run_durations TO hf_reader;
GRANT SELECT ON TABLE ops.run_durations TO hf_operator;


--
-- Name: TABLE run_events; Type: ACL; Schema: ops; Owner: -
--

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.run_events TO hf_producer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.run_events TO hf_worker;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.run_events TO hf_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.run_events TO hf_operator;


--
-- Name: TABLE run_list; Type: ACL; Schema: ops; Owner: -
--

GRANT SELECT ON TABLE ops.run_list TO hf_producer;
GRANT SELECT ON TABLE ops.run_list TO hf_worker;
GRANT SELECT ON TABLE ops.run_list TO hf_reader;
GRANT SELECT ON TABLE ops.run_list TO hf_operator;


--
-- Name: TABLE runs; Type: ACL; Schema: ops; Owner: -
--

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.runs TO hf_producer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.runs TO hf_worker;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.runs TO hf_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.runs TO hf_operator;


--
-- Name: TABLE settings; Type: ACL; Schema: ops; Owner: -
--

GRANT SELECT ON TABLE ops.settings TO hf_producer;
GRANT SELECT ON TABLE ops.settings TO hf_worker;
GRANT SELECT ON TABLE ops.settings TO hf_reader;
GRANT SELECT ON TABLE ops.settings TO hf_operator;


--
-- Name: TABLE success_rate; Type: ACL; Schema: ops; Owner: -
--

GRANT SELECT ON TABLE ops.success_rate TO hf_producer;
GRANT SELECT ON TABLE ops.success_rate TO hf_worker;
GRANT SELECT ON TABLE ops.success_rate TO hf_reader;
GRANT SELECT ON TABLE ops.success_rate TO hf_operator;


--
-- Name: TABLE webhook_deliveries; Type: ACL; Schema: ops; Owner: -
--

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.webhook_deliveries TO hf_producer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.webhook_deliveries TO hf_worker;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.webhook_deliveries TO hf_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE ops.webhook_deliveries TO hf_operator;


--
-- Name: TABLE worker_utilization; Type: ACL; Schema: ops; Owner: -
--

GRANT SELECT ON TABLE ops.worker_utilization TO hf_producer;
GRANT SELECT ON TABLE ops.worker_utilization TO hf_worker;
GRANT SELECT ON TABLE ops.worker_utilization TO hf_reader;
GRANT SELECT ON TABLE ops.worker_utilization TO hf_operator;


--
-- Name: TABLE audit_logs; Type: ACL; Schema: work; Owner: -
--

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE work.audit_logs TO hf_producer;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE work.audit_logs TO hf_worker;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE work.audit_logs TO hf_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE work.audit_logs TO hf_operator;


--
-- PostgreSQL database dump complete
--


