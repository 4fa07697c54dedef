-- Starts a list with one wish per tick, or with the option `alone` a wish without a list.
create or replace function toy.start_for_tick(target text, input jsonb, options jsonb, tenant text)
returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.refuse_options('toy', start_for_tick.options, '{alone}');
  if (start_for_tick.options ->> 'alone')::boolean then
    return array[holdfast.start_step('toy.wish', start_for_tick.target, start_for_tick.input,
                                     tenant => start_for_tick.tenant)::text];
  end if;
  return array[holdfast.begin_run(
    'toy.list', start_for_tick.target, 'toy.wish',
    jsonb_build_array(jsonb_build_object('kind', start_for_tick.target, 'input', start_for_tick.input)),
    '{"asker": "the clock"}', null, start_for_tick.tenant, null)::text];
end
$$;
