-- Returns what handlers take beside a step's own input, for a batch of claimed steps. Each entry names a step, an
-- argument, a source and a name in it: a field of the `context`, the `whole` context, the result of a `parent` (of a
-- mapped one the list of its items' results), by name the results of the `inner` steps that the step planned and waited
-- for, a field of its `own` input, its `name` or the `trace`. Missing values are omitted.
create or replace function flow.step_surroundings(
  step_ids bigint[], of_steps bigint[], arguments text[], names text[], sources text[])
returns table (step_id bigint, version text, input jsonb)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off     -- by key, whatever the statistics say
set enable_bitmapscan = off
set enable_mergejoin = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
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
$$;
grant execute on function flow.step_surroundings to hf_producer, hf_worker, hf_reader, hf_operator;
