-- Refuses the first argument of a preview that cannot be right.
create or replace function rules.check_preview(
  rule jsonb, source text, metadata jsonb, project_id text, expires_in interval, unchanged bigint, key text, actor text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if jsonb_typeof(check_preview.rule) is distinct from 'object' then
    perform holdfast.refuse('RN005', format('a rule must be a JSON object, got %s',
                                            coalesce(jsonb_typeof(check_preview.rule), 'null')),
                            'docs/reference/rule.schema.json has the schema', 'rule');
  end if;
  perform holdfast.check_name('source', coalesce(check_preview.source, ''), 100);
  perform holdfast.check_name('project_id', check_preview.project_id);
  perform holdfast.check_name('key', check_preview.key, 400);
  perform holdfast.check_name('actor', check_preview.actor);
  perform holdfast.check_size('metadata', check_preview.metadata);
  if jsonb_typeof(coalesce(check_preview.metadata, '{}')) <> 'object' then
    perform holdfast.refuse('RN005', format('metadata must be a JSON object, got %s',
                                            jsonb_typeof(check_preview.metadata)),
                            'use such as {"correlationId": "req-1"}', 'metadata');
  end if;
  if check_preview.metadata ? 'correlationId'
     and not coalesce(holdfast.is_name(check_preview.metadata ->> 'correlationId', 400), false) then
    perform holdfast.check_name('correlationId', coalesce(check_preview.metadata ->> 'correlationId', ''), 400);
  end if;
  if (check_preview.expires_in > '0' and check_preview.expires_in <= interval '30 days') is not true then
    perform holdfast.refuse('RN005', format('a plan must expire after more than 0 and at most 30 days, got %s',
                                            check_preview.expires_in),
                            'preview again when you need it', 'expires_in');
  end if;
  if (check_preview.unchanged >= 0) is not true then
    perform holdfast.refuse('RN005', format('unchanged must be 0 or more, got %s', check_preview.unchanged),
                            'count the items that the rule leaves as they are', 'unchanged');
  end if;
end
$$;
