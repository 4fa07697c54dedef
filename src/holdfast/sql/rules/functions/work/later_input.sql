-- Returns the input of a target that was tried before, is only read or undoes another: `plain`, and what is special.
-- PostgreSQL inlines it.
create or replace function rules.later_input(plain jsonb, error jsonb, retries int, is_settling boolean, undoes jsonb)
returns json
language sql immutable
begin atomic
  select (later_input.plain || jsonb_build_object(
            'retries', coalesce(later_input.retries, 0), 'is_unknown', rules.is_unknown(later_input.error),
            'rate_limits',
            case when coalesce((later_input.error ->> 'retries')::int, 0) = coalesce(later_input.retries, 0)
                 then coalesce((later_input.error ->> 'rate_limits')::int, 0) else 0 end)
          || case when later_input.is_settling then '{"only_reads": true}' else '{}'::jsonb end
          || case when later_input.undoes is null then '{}'
                  else jsonb_build_object('undoes', later_input.undoes) end)::json;
end;
