-- Drops what is still hoped for.
create or replace function toy.cancel_open(ids text[], reason text)
returns void
language sql
begin atomic
  select holdfast.cancel_open(cancel_open.ids);
end;
