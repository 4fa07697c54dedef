-- Returns how long to wait after the `failure`th failure in a row, by the policy. The only backoff function.
create or replace function holdfast.backoff(policy text, failure int, chance double precision default holdfast.chance())
returns interval
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  law holdfast.policies;
  seconds numeric;
  spread numeric;
begin
  select p.* into strict law from holdfast.policies p where p.policy = backoff.policy;
  if backoff.failure <= 0 then
    return '0';
  end if;
  seconds := case
    when backoff.failure <= cardinality(law.waits) then
      extract(epoch from law.waits[backoff.failure])  -- guard: waits
    when law.law = 'power' then trunc(power(backoff.failure::numeric, law.growth))
    -- The exponent is capped: beyond it every growth above 1 exceeds any cap, and numeric would compute for ever.
    else extract(epoch from law.base) * power(law.growth, least(backoff.failure - 1, 100)) end;
  seconds := least(seconds, extract(epoch from least(law.longest, interval '100 years')));
  if law.jitter > 0 and law.jitter_in_seconds and seconds = trunc(seconds) and seconds >= 1 then
    spread := round(seconds * law.jitter);
    seconds := greatest(1, seconds - spread + floor(backoff.chance * (2 * spread + 1)));
  elsif law.jitter > 0 then
    seconds := greatest(case when law.jitter_in_seconds and seconds >= 1 then 1 else 0 end,
                        trunc(seconds * (1 + law.jitter * (2 * backoff.chance::numeric - 1)), 3));
  end if;
  return make_interval(secs => seconds::double precision);
end
$$;
grant execute on function holdfast.backoff to hf_producer, hf_worker, hf_reader, hf_operator;
