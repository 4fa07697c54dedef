-- How many of these wishes are granted, as the transaction sees it.
create or replace function toy.granted(step_ids bigint[])
returns bigint
language sql stable
begin atomic
  select count(*) from holdfast.steps s where s.id = any (granted.step_ids) and s.state = 'granted';
end;
grant execute on function toy.granted to hf_worker;
