-- Whether an error leaves open if the channel was changed: a call that timed out or broke, or a worker that was lost
-- with its call. rules.rule_targets has the same condition, because views are installed before functions.
create or replace function rules.is_unknown(error jsonb)
returns boolean
language sql immutable
begin atomic
  select coalesce(is_unknown.error ->> 'unknown' = 'true' or is_unknown.error ->> 'type' = 'LeaseExpired'
                  or is_unknown.error ->> 'reason' = 'outcome_unknown', false);
end;
