-- Whether there is any limit, by rule or by state, whose name begins with that word and a colon.
create or replace function holdfast.has_limits(word text)
returns boolean
language sql stable
begin atomic
  select exists (select from holdfast.limits r
                  where r.name >= has_limits.word || ':' and r.name < has_limits.word || ';')
      or exists (select from holdfast.limit_states s
                  where s.name >= has_limits.word || ':' and s.name < has_limits.word || ';');
end;
