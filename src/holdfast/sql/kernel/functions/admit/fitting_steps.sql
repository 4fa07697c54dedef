-- How many steps of a call, counted from its first, a limit with so many slots and tokens takes (null tokens: any).
create or replace function holdfast.fitting_steps(charges numeric[], slots int, tokens numeric)
returns int
language sql immutable
begin atomic
  select least(slots, (
    select count(*) from (select sum(u.charge) over (order by u.place) as charge
                            from unnest(charges) with ordinality u (charge, place)) c
     where (c.charge > tokens) is not true))::int;
end;
