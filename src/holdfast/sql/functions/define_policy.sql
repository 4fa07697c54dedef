-- Says how steps of a policy are retried: `tries` executions in all, after failure n the nth of `waits`, beyond them base,
-- base × growth, … up to `longest`, each spread by `jitter`. The presets that machines name stay as they are.
create or replace function holdfast.define_policy(
  policy text, tries int default 3, waits interval[] default '{}', base interval default '1 s', growth numeric default 2,
  longest interval default '1 hour', jitter numeric default 0.1, longest_retry_after interval default '1 hour')
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if coalesce(define_policy.policy, '') = '' or define_policy.policy in (
       select c.policy from holdfast.machines c where c.policy is not null) then
    perform holdfast.refuse('RN005', format('policy %s is not to be changed', define_policy.policy), 'take a name of your own');
  end if;
  insert into holdfast.policies as p (policy, tries, waits, base, growth, longest, jitter, longest_retry_after)
  values (define_policy.policy, define_policy.tries, define_policy.waits, define_policy.base, define_policy.growth,
          define_policy.longest, define_policy.jitter, define_policy.longest_retry_after)
  on conflict on constraint policies_pkey do update
    set tries = excluded.tries, waits = excluded.waits, base = excluded.base, growth = excluded.growth, law = 'exponential',
        longest = excluded.longest, jitter = excluded.jitter, longest_retry_after = excluded.longest_retry_after
    where (p.tries, p.waits, p.base, p.growth, p.longest, p.jitter, p.longest_retry_after) is distinct from
          (excluded.tries, excluded.waits, excluded.base, excluded.growth, excluded.longest, excluded.jitter,
           excluded.longest_retry_after);
exception when check_violation then
  perform holdfast.refuse('RN005', format('policy %s makes no sense: %s', define_policy.policy, sqlerrm),
                          'tries from 1, waits not negative, jitter from 0 to 1');
end
$$;
