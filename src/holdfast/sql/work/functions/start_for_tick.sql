-- Starts the task of a schedule's tick, with the options queue, priority, limits and weight, and returns its id.
create or replace function work.start_for_tick(target text, input jsonb, options jsonb, tenant text)
returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
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
