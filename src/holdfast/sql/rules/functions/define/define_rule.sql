-- Defines a rule, in its JSON form, under the name that it has in it, and returns its version. The same definition
-- again returns the version that exists. Of the rest of the rule only the size is checked: Python reads it
-- (docs/design/rules.md says why). `actor` names the person that the login acts for.
create or replace function rules.define_rule(definition jsonb, actor text default null, tenant text default 'default')
returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_tenant(define_rule.tenant);
  perform holdfast.check_name('actor', define_rule.actor);
  if jsonb_typeof(define_rule.definition) is distinct from 'object' then
    perform holdfast.refuse('RN005', format('a rule must be a JSON object, got %s',
                                            coalesce(jsonb_typeof(define_rule.definition), 'null')),
                            'docs/reference/rule.schema.json has the schema', 'definition');
  end if;
  return (rules.freeze_rule(define_rule.definition, false, coalesce(define_rule.actor, session_user),
                            define_rule.tenant)).version;
end
$$;
grant execute on function rules.define_rule to hf_worker, hf_operator;
