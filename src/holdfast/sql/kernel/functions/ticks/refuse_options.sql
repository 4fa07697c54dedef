-- Refuses options of a schedule that its face does not have.
create or replace function holdfast.refuse_options(face text, options jsonb, known text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
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
