-- Raises the error for a step that breaks a rule, as a CHECK constraint of that name would.
create or replace function holdfast.refuse_broken(rule text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception using
    errcode = 'check_violation', schema = 'holdfast', table = 'steps', constraint = refuse_broken.rule,
    message = format('a step would break the rule %s', refuse_broken.rule);
end
$$;
