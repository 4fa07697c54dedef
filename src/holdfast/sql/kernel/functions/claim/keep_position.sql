-- Keeps where a full batch ended, for the worker's next claim (position_of). Every second a claim starts from the
-- beginning again: the second line of the setting is when. Times are in seconds, which the session's settings do not
-- change. No name contains a line break. PostgreSQL inlines it; so it returns a value, which nobody reads.
create or replace function holdfast.keep_position(place text, last holdfast.due_position, clock timestamptz)
returns text
language sql volatile
begin atomic
  select set_config('holdfast.position', concat_ws(E'\n', keep_position.place,
    case when split_part(current_setting('holdfast.position', true), E'\n', 1) = keep_position.place
              and split_part(current_setting('holdfast.position', true), E'\n', 2)::numeric
                  > extract(epoch from keep_position.clock)
         then split_part(current_setting('holdfast.position', true), E'\n', 2)
         else (extract(epoch from keep_position.clock) + 1)::text end,
    extract(epoch from (keep_position.last).due_at), (keep_position.last).id), false);
end;
