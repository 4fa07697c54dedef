-- Whether only the machine's face parks and unparks its steps for that reason.
create or replace function holdfast.is_own_parking(machine text, parked_for text)
returns boolean
language sql stable
begin atomic
  select exists (select from holdfast.machines m
                  where m.machine = is_own_parking.machine and m.own_parking = is_own_parking.parked_for);
end;
