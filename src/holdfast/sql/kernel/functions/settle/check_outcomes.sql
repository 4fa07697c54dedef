-- Refuses outcomes that cannot be read: not an array, without a step or lease, or of an unknown kind.
create or replace function holdfast.check_outcomes(outcomes jsonb)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  odd jsonb;
begin
  if jsonb_typeof(check_outcomes.outcomes) is distinct from 'array' then
    perform holdfast.refuse('RN005', 'outcomes must be an array of objects',
                            '[{"step_id": 1, "lease_id": 1, "outcome": "done"}]');
  end if;
  select o into odd
    from jsonb_array_elements(check_outcomes.outcomes) o
   where jsonb_typeof(o) <> 'object' or coalesce(o ->> 'step_id', '') !~ '^[0-9]+$'
      or coalesce(o ->> 'lease_id', '') !~ '^[0-9]+$'
      or coalesce(o ->> 'outcome', '') not in ('done', 'retry', 'fail', 'snooze', 'continue', 'release')
      or (coalesce(o -> 'pause', 'null') <> 'null'
          and (o ->> 'outcome' not in ('retry', 'snooze') or jsonb_typeof(o -> 'pause') <> 'string'
               or holdfast.is_name(o ->> 'pause') is not true or strpos(o ->> 'pause', '*') > 0))
      or (o ?| '{policy,ordinal,is_charged,call_key}' and (
            (coalesce(o -> 'policy', 'null') <> 'null' and jsonb_typeof(o -> 'policy') <> 'string')
            or (coalesce(o -> 'ordinal', 'null') <> 'null' and o ->> 'ordinal' !~ '^[1-9][0-9]{0,5}$')
            or coalesce(jsonb_typeof(o -> 'is_charged'), 'null') not in ('boolean', 'null')
            or (coalesce(o -> 'call_key', 'null') <> 'null'
                and (jsonb_typeof(o -> 'call_key') <> 'string' or length(o ->> 'call_key') > 400))))
   limit 1;
  if odd is not null then
    perform holdfast.refuse('RN005', format('invalid outcome: %s', left(odd::text, 200)),
                            'step_id and lease_id as claimed, outcome one of done, retry, fail, snooze, continue, '
                            'release; pause, on a retry or snooze, names one limit; ordinal is 1 to 999999');
  end if;
end
$$;
