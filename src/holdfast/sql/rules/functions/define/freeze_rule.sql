-- Returns the version of a rule with this definition: the latest if it is the same, else a new one. The name is the
-- definition's. A draft is what a preview froze; a definition by name is never one. The caller checked the tenant.
create or replace function rules.freeze_rule(definition jsonb, is_draft boolean, actor text, tenant text)
returns rules.rule_versions
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  name constant text := freeze_rule.definition ->> 'name';
  latest rules.rule_versions;
begin
  perform holdfast.check_name('name', coalesce(name, ''), 100);
  if pg_column_size(freeze_rule.definition) > 8388608 then
    perform holdfast.refuse('RN011', format('a rule must have at most 8388608 bytes, got %s',
                                            pg_column_size(freeze_rule.definition)),
                            'split the list of prices into several rules', 'definition');
  end if;
  -- One at a time per rule, so that versions have no gaps.
  perform pg_advisory_xact_lock(hashtextextended(format('rules.rule %s %s', freeze_rule.tenant, name), 0));
  select v.* into latest from rules.rule_versions v
   where v.tenant = freeze_rule.tenant and v.rule_id = name and (freeze_rule.is_draft or not v.is_draft)
   order by v.version desc limit 1;
  if latest.definition = freeze_rule.definition then
    return latest;
  end if;
  insert into rules.rule_versions (tenant, rule_id, version, definition, is_draft, defined_at, defined_by)
  select freeze_rule.tenant, name, coalesce(max(v.version), 0) + 1, freeze_rule.definition, freeze_rule.is_draft,
         holdfast.clock(), freeze_rule.actor
    from rules.rule_versions v where v.tenant = freeze_rule.tenant and v.rule_id = name
  returning * into latest;
  return latest;
end
$$;
