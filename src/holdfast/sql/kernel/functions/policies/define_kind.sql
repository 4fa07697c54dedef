-- Defines the defaults of a handler's steps: queue, policy, lease, timeout. A login for all tenants defines them for
-- everybody. A login for some tenants defines them for those, and their own definition overrides the shared one. A new
-- definition replaces the previous one; started steps keep their queue, and their policy if they have one. `limits` and
-- `weight` may name fields of the input (shop:{shop}). `call_weight` is what each call of the handler takes from the
-- buckets, beside the weights of its steps. Null leaves these three as they are, because an older worker does not know
-- them. A call serves up to `batch` steps, which have the same value in the input's field `batch_by`; a null batch
-- leaves both as they are.
create or replace function holdfast.define_kind(
  kind text, queue text default null, policy text default null, lease interval default null,
    timeout interval default null, limits text[] default null, weight text default null,
    call_weight numeric default null, batch int default null, batch_by text default null)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  tenants constant text[] := holdfast.tenants_to_define(format('kind %s', define_kind.kind));
begin
  perform holdfast.check_start(define_kind.kind, null, 0);
  perform holdfast.check_name('queue', define_kind.queue);
  perform holdfast.check_claim('kind', 1, define_kind.lease);
  perform holdfast.check_claim('kind', 1, define_kind.timeout);
  perform holdfast.check_limit_names(coalesce(define_kind.limits, '{}'));
  perform holdfast.weight_for(null, case when define_kind.weight !~ '\{' then define_kind.weight end,
                              define_kind.call_weight, '{}');
  if define_kind.batch not between 1 and 10000 then
    perform holdfast.refuse('RN005', format('batch must be 1 to 10000, got %s', define_kind.batch),
                            'use 250', 'batch');
  end if;
  if define_kind.batch_by is not null and define_kind.batch is null then
    perform holdfast.refuse('RN005', 'batch_by needs a batch', 'pass batch, the most steps of a call', 'batch_by');
  end if;
  perform holdfast.check_name('batch_by', define_kind.batch_by);
  perform holdfast.check_policies(array_remove(array[define_kind.policy], null));
  insert into holdfast.kinds as k (kind, tenant, policy, lease, timeout, queue, limits, weight, call_weight,
                              batch, batch_by)
  select define_kind.kind, t.tenant,
         coalesce((select p.policy from holdfast.policies p
                    where p.policy = holdfast.policy_name(define_kind.policy, t.tenant)), define_kind.policy),
         define_kind.lease, define_kind.timeout, define_kind.queue, define_kind.limits, define_kind.weight,
         define_kind.call_weight, define_kind.batch, define_kind.batch_by
    from unnest(tenants) t (tenant)
   order by t.tenant
  on conflict on constraint kinds_pkey do update
    set policy = excluded.policy, lease = excluded.lease, timeout = excluded.timeout, queue = excluded.queue,
        limits = coalesce(excluded.limits, k.limits), weight = coalesce(excluded.weight, k.weight),
        call_weight = coalesce(excluded.call_weight, k.call_weight),
        batch = coalesce(excluded.batch, k.batch),
        batch_by = case when excluded.batch is null then k.batch_by else excluded.batch_by end
    -- Each worker defines its kinds when it starts; only changes are written.
    where (k.policy, k.lease, k.timeout, k.queue, k.limits, k.weight, k.call_weight, k.batch, k.batch_by)
      is distinct
      from (excluded.policy, excluded.lease, excluded.timeout, excluded.queue, coalesce(excluded.limits, k.limits),
            coalesce(excluded.weight, k.weight), coalesce(excluded.call_weight, k.call_weight),
            coalesce(excluded.batch, k.batch),
            case when excluded.batch is null then k.batch_by else excluded.batch_by end);
exception when foreign_key_violation then
  perform holdfast.refuse('RN005', format('there is no policy %s', define_kind.policy),
                          'holdfast.policies lists them', 'policy');
end
$$;
grant execute on function holdfast.define_kind to hf_worker, hf_operator;
