-- The id of an event, from the number of its note or move. All have the same length, so that they sort in their order.
create or replace function ops.event_id(number bigint)
returns text
language sql immutable
begin atomic
  select 'evt-' || lpad(event_id.number::text, 19, '0');
end;
