-- Returns the name under which a face's schema or function is installed beside this kernel: its own, but with the
-- schema's name as a prefix in a self-test's copy of the kernel.
create or replace function holdfast.face_name(name text)
returns text
language sql immutable parallel safe
begin atomic
  select case when 'holdfast' = 'hold' || 'fast' then face_name.name else 'holdfast' || '_' || face_name.name end;
end;
