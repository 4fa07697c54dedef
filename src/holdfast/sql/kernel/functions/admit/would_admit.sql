-- Whether a claim would take a step now as far as time and its limits go: it is due or parked on a limit, and each of
-- its limits has room for it. For readers; whether others are before it in a limit's queue is not asked.
create or replace function holdfast.would_admit(step holdfast.steps, clock timestamptz)
returns boolean
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  charge constant numeric := coalesce(step.weight, 1) + coalesce((
    select k.call_weight from holdfast.kinds k
     where k.kind = step.kind and k.tenant in (step.tenant, '*') order by k.tenant = '*' limit 1), 0);
begin
  if coalesce(step.due_at, case when step.parked_for = 'limit' then step.parked_due_at end) <= would_admit.clock then
    return not exists (
      select
        from unnest(step.limits || array['queue:' || step.queue, 'kind:' || step.kind,
                                         'tenant:' || step.tenant]) n (name)
       cross join lateral (values (step.tenant), ('*')) t (tenant)
        left join holdfast.limit_states h on h.name = n.name and h.tenant = t.tenant
        left join lateral holdfast.limit_rule(n.name, t.tenant) r on true
       where coalesce(h.held, 0) >= r.concurrency
          or greatest(h.paused_until, r.paused_until, h.open_until) > would_admit.clock
          or (h.open_until is not null and holdfast.is_probed(h))
          or (h.id is not null
              and holdfast.tokens_at(h, r, would_admit.clock) < least(charge, r.burst)));
  end if;
  return false;
end
$$;
grant execute on function holdfast.would_admit to hf_producer, hf_worker, hf_reader, hf_operator;
