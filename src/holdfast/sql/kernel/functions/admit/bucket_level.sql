-- The tokens in a bucket at that time; null without a rate. Twelve decimals, rounded down, so that no refill adds up to
-- more than the rate. A clock that went back adds nothing.
create or replace function holdfast.bucket_level(
  tokens numeric, filled_at timestamptz, rate numeric, per interval, burst numeric, clock timestamptz)
returns numeric
language sql immutable
begin atomic
  select case when rate is null then null
              when tokens is null then burst
              else least(burst, tokens + trunc(
                     round(rate * greatest(0, extract(epoch from clock - filled_at)), 18)
                     / extract(epoch from per), 12)) end;
end;
grant execute on function holdfast.bucket_level to hf_producer, hf_worker, hf_reader, hf_operator;
