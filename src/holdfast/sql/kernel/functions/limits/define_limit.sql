-- Makes or replaces the rule of a limit, or of a family (`shop:*`): how many steps are held at once; `rate` tokens per
-- `per`, with at most `burst` saved up (null: as many as come in one `per`); a breaker that opens for `breaker_for`
-- after `breaker_after` failures in a row of the error types `breaker_counts` (null: RateLimited and Unavailable). What
-- is null is not limited. Steps that are held already are counted. `tenant` is whose steps are counted, '*' all
-- tenants' together; null: all for a login for all tenants, else each of the login's. Defining the same again changes
-- nothing. `of_app` is for workers, which define the rules of their app each time they connect: such a rule does not
-- replace what a person set or removed after an app had defined the same rule.
create or replace function holdfast.define_limit(
  name text, concurrency int default null, rate numeric default null, per interval default null,
  burst numeric default null, breaker_after int default null, breaker_for interval default null,
  breaker_counts text[] default null, tenant text default null, actor text default null,
  of_app boolean default false)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '10s'  -- claims queue behind it while it waits for those under way
as $$
declare
  tenants constant text[] := holdfast.limit_tenants(define_limit.tenant, format('limit %s', define_limit.name));
  owner text;
  wanted holdfast.limits;
  present holdfast.limits;
  rule jsonb;  -- as limit_changes keeps it
  is_new boolean;
begin
  perform holdfast.check_name('actor', define_limit.actor);
  foreach owner in array tenants loop
    wanted := (define_limit.name, owner, define_limit.concurrency, define_limit.rate, define_limit.per,
               coalesce(define_limit.burst, case when define_limit.rate > 0 then greatest(define_limit.rate, 1) end),
               define_limit.breaker_after, define_limit.breaker_for,
               coalesce(define_limit.breaker_counts, case when define_limit.breaker_after is not null
                                                          then array['RateLimited', 'Unavailable'] end),
               null, null, null, holdfast.clock())::holdfast.limits;
    perform holdfast.check_rule(wanted);
    select r.* into present from holdfast.limits r where r.name = wanted.name and r.tenant = owner;
    wanted.paused_until := present.paused_until;
    wanted.paused_by := present.paused_by;
    wanted.pause_reason := present.pause_reason;
    present.defined_at := wanted.defined_at;
    rule := jsonb_strip_nulls(to_jsonb(wanted)
                              - array['name', 'tenant', 'paused_until', 'paused_by', 'pause_reason', 'defined_at']);
    is_new := (present = wanted) is not true;
    if define_limit.of_app then
      continue when holdfast.is_overruled(define_limit.name, owner, rule);  -- guard: person
      continue when not is_new and holdfast.is_rule_of_app(define_limit.name, owner, rule);
    else
      continue when not is_new;
    end if;
    if is_new then
      perform holdfast.change_rule(define_limit.name, owner, wanted);
    end if;
    insert into holdfast.limit_changes (at, tenant, name, event, actor_kind, actor, login, payload)
    values (wanted.defined_at, owner, define_limit.name, 'defined',
            case when define_limit.of_app then 'worker' else 'user' end, coalesce(define_limit.actor, session_user),
            case when define_limit.actor <> session_user then session_user end, rule);
  end loop;
end
$$;
grant execute on function holdfast.define_limit to hf_worker, hf_operator;
