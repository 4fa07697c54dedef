-- Refuses a reason for parking that cannot be a name, or that the kernel reserves for itself.
create or replace function holdfast.check_parking(parked_for text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_name('parked_for', coalesce(check_parking.parked_for, ''));
  if holdfast.is_kernels_parking(check_parking.parked_for) then
    perform holdfast.refuse(
      'RN005', format('parked_for must not be %s, which the kernel reserves', check_parking.parked_for),
      'name what the step waits for, such as approval');
  end if;
end
$$;
