insert into holdfast.policies (policy, tries) values ('toy.wish', 3) on conflict (policy) do update set tries = excluded.tries;
