-- Defines how steps are retried: `tries` executions in all; after failure n the nth of `waits`; beyond them base, base
-- × growth, … up to `longest` (law 'power': n ^ growth whole seconds), each spread by `jitter` (with
-- `jitter_in_seconds` whole waits stay whole). If not `retryable`, the first failure is final, whatever `tries` is. The
-- presets that machines name cannot be changed. A login for some tenants defines it for those, beside the shared one.
create or replace function holdfast.define_policy(
  policy text, tries int default 3, waits interval[] default '{}', base interval default '1 s',
    growth numeric default 2,
  longest interval default '1 hour', jitter numeric default 0.1, longest_retry_after interval default '1 hour',
  law text default 'exponential', jitter_in_seconds boolean default false, retryable boolean default true)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  tenants constant text[] := holdfast.tenants_to_define(format('policy %s', define_policy.policy));
  taken text;
begin
  perform holdfast.check_name('policy', coalesce(define_policy.policy, ''));
  if define_policy.policy in (select c.policy from holdfast.machines c where c.policy is not null) then
    perform holdfast.refuse('RN005', format('policy %s is a preset and cannot be changed', define_policy.policy),
                            'use a name of your own', 'policy');
  end if;
  if define_policy.growth > 1000 then  -- its powers could overflow and fail a settle
    perform holdfast.refuse('RN005', format('growth of policy %s must be at most 1000, got %s',
                                            define_policy.policy, define_policy.growth),
                            'use 2 to double each wait', 'growth');
  end if;
  select min(p.policy) into taken
    from unnest(tenants) t (tenant)
    join holdfast.policies p on p.policy = holdfast.policy_name(define_policy.policy, t.tenant)
                            and p.tenant <> t.tenant;
  if taken is not null then
    perform holdfast.refuse('RN009', format('policy %s belongs to another tenant', taken), 'use another name');
  end if;
  insert into holdfast.policies as p
    (policy, tenant, tries, waits, base, growth, law, longest, jitter, jitter_in_seconds,
     longest_retry_after, retryable)
  select holdfast.policy_name(define_policy.policy, t.tenant), t.tenant,
         define_policy.tries, define_policy.waits, define_policy.base, define_policy.growth, define_policy.law,
         define_policy.longest, define_policy.jitter, define_policy.jitter_in_seconds,
           define_policy.longest_retry_after,
         coalesce(define_policy.retryable, true)
    from unnest(tenants) t (tenant)
   order by t.tenant
  on conflict on constraint policies_pkey do update
    set tries = excluded.tries, waits = excluded.waits, base = excluded.base,
      growth = excluded.growth, law = excluded.law,
        longest = excluded.longest, jitter = excluded.jitter, jitter_in_seconds = excluded.jitter_in_seconds,
        longest_retry_after = excluded.longest_retry_after, retryable = excluded.retryable
    where p is distinct from excluded;  -- each worker defines its policies when it starts; only changes are written
exception when check_violation then
  perform holdfast.refuse('RN005', format('policy %s is invalid: %s', define_policy.policy, sqlerrm),
                          'use tries from 1, waits from 0, jitter from 0 to 1, law exponential or power');
end
$$;
grant execute on function holdfast.define_policy to hf_worker, hf_operator;
