-- The rule of one tenant (or of all, '*') that a limit goes by: the one with its exact name, else its family's. It is
-- put into a query as it stands.
create or replace function holdfast.limit_rule(name text, tenant text)
returns setof holdfast.limits
language sql stable
begin atomic
  select r.*
    from holdfast.limits r
   where r.tenant = limit_rule.tenant and r.name in (limit_rule.name, holdfast.limit_family(limit_rule.name))
   order by r.name = limit_rule.name desc
   limit 1;
end;
grant execute on function holdfast.limit_rule to hf_producer, hf_worker, hf_reader, hf_operator;
