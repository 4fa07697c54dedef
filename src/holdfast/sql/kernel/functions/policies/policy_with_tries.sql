-- Returns the name of a policy that is like `policy` but has that many tries (null: any number) and is `retryable` or
-- not. Makes the policy if needed.
create or replace function holdfast.policy_with_tries(policy text, tries int, retryable boolean)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  like_it constant text := regexp_replace(policy_with_tries.policy, ' with (\d+|any) tries(, not retryable)?$', '');
  named constant text := format('%s with %s tries%s', like_it, coalesce(policy_with_tries.tries::text, 'any'),
                                case when not policy_with_tries.retryable then ', not retryable' end);
begin
  if exists (select from holdfast.policies p
              where p.policy = like_it and p.tries is not distinct from policy_with_tries.tries
                and p.retryable = policy_with_tries.retryable) then
    return like_it;
  end if;
  insert into holdfast.policies as o
    (policy, tenant, tries, retryable, waits, base, growth, law, longest, jitter, jitter_in_seconds,
     longest_retry_after)
  select named, p.tenant, policy_with_tries.tries, policy_with_tries.retryable, p.waits, p.base, p.growth, p.law,
         p.longest, p.jitter, p.jitter_in_seconds, p.longest_retry_after
    from holdfast.policies p where p.policy = like_it
  on conflict on constraint policies_pkey do update
    set waits = excluded.waits, base = excluded.base, growth = excluded.growth, law = excluded.law,
        longest = excluded.longest, jitter = excluded.jitter, jitter_in_seconds = excluded.jitter_in_seconds,
        longest_retry_after = excluded.longest_retry_after
    where o is distinct from excluded;  -- the original has changed since
  return named;
end
$$;
