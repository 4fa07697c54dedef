-- Refuses a plan that cannot be carried out: not an array, a step without a kind, a duplicate name, a parent that does
-- not exist. (The trigger on edges refuses longer cycles.)
create or replace function holdfast.check_plan(run_id uuid, steps jsonb)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
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
