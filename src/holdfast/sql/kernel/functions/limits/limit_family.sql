-- The family that a limit's name is of: that of shop:acme is shop:*. Null for a name without a colon.
create or replace function holdfast.limit_family(name text)
returns text
language sql immutable
begin atomic
  select case when strpos(limit_family.name, ':') > 0 then split_part(limit_family.name, ':', 1) || ':*' end;
end;
grant execute on function holdfast.limit_family to hf_producer, hf_worker, hf_reader, hf_operator;
