-- Keeps where a full batch ended, for the worker's next claim. Every second a claim starts from the beginning again.
create or replace function holdfast.remember_position(place text, last holdfast.due_position, clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
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
