-- Returns where a worker's last full batch of a place (worker, queue, priority) ended, if that was within the last
-- second; otherwise the beginning. It is a hint that the session keeps (keep_position). The place tells it from another
-- worker's hint behind a pooler. PostgreSQL inlines it: a call would cost more than what it reads.
create or replace function holdfast.position_of(place text, clock timestamptz)
returns holdfast.due_position
language sql stable
begin atomic
  select case
    when split_part(current_setting('holdfast.position', true), E'\n', 1) = position_of.place
         and split_part(current_setting('holdfast.position', true), E'\n', 2)::numeric
             > extract(epoch from position_of.clock)
    then row(to_timestamp(split_part(current_setting('holdfast.position', true), E'\n', 3)::float8),
             split_part(current_setting('holdfast.position', true), E'\n', 4)::bigint)::holdfast.due_position
    else row('-infinity'::timestamptz, 0::bigint)::holdfast.due_position end;
end;
