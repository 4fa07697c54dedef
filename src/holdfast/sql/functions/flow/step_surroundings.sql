-- What handlers want beside a step's own input, for a batch of claimed steps: each wish names a step, an argument, and what it is
-- under which name: a field of the `context`, the `whole` of it, the result of a `parent` (of a mapped one the list of its items'), by
-- name those of the `inner` steps that the step planned and waited for, a field of its `own` input, its `name` or the `trace`. What is not
-- there is left out.
create or replace function flow.step_surroundings(
  step_ids bigint[], of_steps bigint[], arguments text[], names text[], sources text[])
returns table (step_id bigint, version text, input jsonb)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off     -- by key, whatever the statistics say
set enable_bitmapscan = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  with held as materialized (
    select h.id, h.run_id, h.input as own, r.input as request, n.name, substring(n.name from '^(.*)\.[^.]*$') as scope
      from unnest(step_surroundings.step_ids) u (id)
     cross join lateral (select s.id, s.run_id, s.input from holdfast.steps s where s.id = u.id offset 0) h
     cross join lateral (select m.name from holdfast.run_steps m where m.run_id = h.run_id and m.step_id = h.id offset 0) n
     cross join lateral (select q.input from holdfast.runs q where q.id = h.run_id offset 0) r),
  placed as materialized (  -- a sub-flow's steps have the context that the step which opened it made
    select h.*, case when h.scope is null then h.request else (
             select o.cursor from holdfast.run_steps n join holdfast.steps o on o.id = n.step_id
              where n.run_id = h.run_id and n.name = h.scope) end as opening
      from held h),
  found as (
    select w.step_id, jsonb_object_agg(w.argument, v.value) filter (where v.value is not null) as input
      from unnest(step_surroundings.of_steps, step_surroundings.arguments, step_surroundings.names, step_surroundings.sources)
             w (step_id, argument, name, source)
      join placed p on p.id = w.step_id
     cross join lateral (
       select case w.source
                when 'context' then p.opening -> 'context' -> w.name
                when 'whole' then p.opening -> 'context'
                when 'own' then p.own -> w.name
                when 'name' then to_jsonb(p.name)
                when 'trace' then p.request -> 'trace'
                when 'inner' then (
                  select jsonb_object_agg(substr(m.name, length(p.name) + 2), flow.result_in_run(p.run_id, m.name))
                    from holdfast.edges e
                    join holdfast.run_steps m on m.run_id = p.run_id and m.step_id = e.step_id
                   where e.next_id = p.id and starts_with(m.name, concat(p.name, '.')))
                else flow.result_in_run(p.run_id, concat(p.scope || '.', w.name)) end as value) v
     group by w.step_id)
  select p.id, p.opening ->> 'version', coalesce(f.input, '{}')
    from placed p left join found f on f.step_id = p.id;
end
$$;
