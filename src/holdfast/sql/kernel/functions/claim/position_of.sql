-- Returns where a worker's last full batch of a place (worker, queue, priority) ended, if that was within the last
-- second; otherwise the beginning. It is a hint that the session keeps. The place tells it from another worker's hint
-- behind a pooler.
create or replace function holdfast.position_of(place text, clock timestamptz)
returns holdfast.due_position
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  kept constant jsonb := nullif(current_setting('holdfast.position', true), '')::jsonb;
begin
  if kept ->> 'place' = position_of.place and (kept ->> 'until')::timestamptz > position_of.clock then
    return ((kept ->> 'due_at')::timestamptz, (kept ->> 'id')::bigint);
  end if;
  return ('-infinity'::timestamptz, 0::bigint);
end
$$;
