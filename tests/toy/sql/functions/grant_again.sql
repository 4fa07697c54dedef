-- Asks for a wish that was denied once more, politely.
create or replace function toy.grant_again(wish_id text, reason text)
returns text
language sql
begin atomic
  select holdfast.retry(grant_again.wish_id, 'please: ' || coalesce(grant_again.reason, 'no reason'));
end;
grant execute on function toy.grant_again to hf_operator;
