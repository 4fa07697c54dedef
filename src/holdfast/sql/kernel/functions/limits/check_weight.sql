-- Refuses a weight that nothing can be charged by: negative, not a number, too large, or 0 where calls have no weight.
create or replace function holdfast.check_weight(weight numeric, call_weight numeric)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if check_weight.call_weight not between 0 and 1e12 then  -- a NaN is above all numbers
    perform holdfast.refuse('RN005', format('call_weight must be 0 or more, got %s', check_weight.call_weight),
                            'leave it out for 0', 'call_weight');
  end if;
  if check_weight.weight not between 0 and 1e12 then
    perform holdfast.refuse('RN005', format('weight must be 0 or more, got %s', check_weight.weight),
                            'leave it out for 1', 'weight');
  end if;
  if check_weight.weight = 0 and coalesce(check_weight.call_weight, 0) = 0 then
    perform holdfast.refuse('RN005', 'weight must be above 0 where a call has no weight, got 0',
                            'give the kind a call_weight, or leave the weight out for 1', 'weight');
  end if;
end
$$;
