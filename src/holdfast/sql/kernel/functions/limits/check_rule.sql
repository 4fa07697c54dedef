-- Refuses a rule that makes no sense, by the part at fault.
create or replace function holdfast.check_rule(rule holdfast.limits)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_limit_name(rule.name);
  if rule.concurrency < 0 then
    perform holdfast.refuse('RN005', format('concurrency must be 0 or more, got %s', rule.concurrency),
                            '0 admits nothing', 'concurrency');
  end if;
  if (rule.rate > 0 and rule.rate < 'infinity') is false then  -- a NaN is above infinity
    perform holdfast.refuse('RN005', format('rate must be above 0, got %s', rule.rate),
                            'to admit nothing, pause the limit', 'rate');
  end if;
  if rule.rate is not null and rule.per is null then
    perform holdfast.refuse('RN005', format('a rate of %s needs the time that it is per', rule.rate),
                            'give per, such as one second', 'per');
  end if;
  if rule.rate is null and num_nonnulls(rule.per, rule.burst) > 0 then
    perform holdfast.refuse('RN005', 'per and burst go with a rate', 'give a rate, or leave them out', 'rate');
  end if;
  if rule.per not between interval '1 millisecond' and interval '366 days' then
    perform holdfast.refuse('RN005', format('per must be a millisecond to a year, got %s', rule.per),
                            'one second is usual', 'per');
  end if;
  if (rule.burst > 0 and rule.burst < 'infinity') is false then
    perform holdfast.refuse('RN005', format('burst must be above 0, got %s', rule.burst),
                            'leave it out for what comes back in one `per`', 'burst');
  end if;
  if (rule.breaker_after is null) <> (rule.breaker_for is null) then
    perform holdfast.refuse('RN005', 'a breaker needs breaker_after and breaker_for',
                            'such as 6 failures and 60 seconds', 'breaker_after');
  end if;
  if rule.breaker_after < 1 or rule.breaker_for not between interval '1 millisecond' and interval '366 days' then
    perform holdfast.refuse(
      'RN005', format('a breaker opens after 1 failure or more, for a millisecond to a year, got %s and %s',
                      rule.breaker_after, rule.breaker_for), 'such as 6 failures and 60 seconds', 'breaker_after');
  end if;
  if rule.breaker_after is null and rule.breaker_counts is not null then
    perform holdfast.refuse('RN005', 'breaker_counts goes with a breaker', 'give breaker_after and breaker_for',
                            'breaker_counts');
  end if;
  perform holdfast.check_names('breaker_counts', rule.breaker_counts);
end
$$;
