-- Returns the class of a target's error, one of eight; the error names it, or it is UNKNOWN. The only definition;
-- PostgreSQL inlines it.
create or replace function rules.error_class(error jsonb)
returns text
language sql immutable
begin atomic
  select case when error_class.error ->> 'class' in (
                     'RATE_LIMIT', 'TIMEOUT', 'NETWORK', 'SERVER_ERROR', 'NOT_FOUND', 'AUTHORIZATION', 'VALIDATION')
              then error_class.error ->> 'class'
              when error_class.error is not null then 'UNKNOWN' end;
end;
grant execute on function rules.error_class to hf_producer, hf_worker, hf_reader, hf_operator;
