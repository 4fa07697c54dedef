-- Whether retrying a failed target can help: the error may say so itself, otherwise its class decides. A stale target
-- needs a new preview, and a conflict somebody to decide. The only definition; PostgreSQL inlines it.
create or replace function rules.is_retryable(error jsonb)
returns boolean
language sql immutable
begin atomic
  select case when is_retryable.error ->> 'reason' in ('stale', 'conflict') then false
              when jsonb_typeof(is_retryable.error -> 'retryable') = 'boolean'
              then (is_retryable.error -> 'retryable')::boolean
              else coalesce(is_retryable.error ->> 'class', 'UNKNOWN')
                   not in ('NOT_FOUND', 'AUTHORIZATION', 'VALIDATION') end;
end;
grant execute on function rules.is_retryable to hf_producer, hf_worker, hf_reader, hf_operator;
