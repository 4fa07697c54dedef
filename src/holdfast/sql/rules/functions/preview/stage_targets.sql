-- Makes the tables that a preview is copied into, for this transaction. Copy targets into pg_temp.staged_steps, by the
-- columns item_id, currency, price_before, price_after and, where they apply, compare_at_before, compare_at_after,
-- writes_price, writes_compare_at and batch_key (only targets of one key share a call of the channel); refusals into
-- pg_temp.staged_refusals. Amounts are in minor units.
create or replace function rules.stage_targets(channel text, tenant text default 'default')
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_tenant(stage_targets.tenant);
  perform rules.check_channel(stage_targets.channel, stage_targets.tenant);
  perform holdfast.stage_steps();
  alter table pg_temp.staged_steps
    add column if not exists item_id text collate "C",
    add column if not exists currency text,
    add column if not exists price_before bigint,
    add column if not exists price_after bigint,
    add column if not exists compare_at_before bigint,
    add column if not exists compare_at_after bigint,
    add column if not exists writes_price boolean not null default true,
    add column if not exists writes_compare_at boolean not null default false;
  create temporary table if not exists staged_refusals (
    item_id text, reason text not null, message text not null, currency text, price_before bigint, price_after bigint
  ) on commit drop;
  perform rules.check_staging();
  execute format('alter table pg_temp.staged_steps alter column kind set default %1$L, '
                 'alter column queue set default %1$L, alter column limits set default array[%1$L], '
                 'alter column priority set default 1, '  -- passes of reconciliation have 0
                 'alter column batch_key set default ''''',  -- they share calls, also if no worker said so yet
                 'rules:' || stage_targets.channel);
  execute format('grant insert (item_id, currency, price_before, price_after, compare_at_before, compare_at_after, '
                 'writes_price, writes_compare_at) on pg_temp.staged_steps to %I', session_user);
  execute format('grant insert on pg_temp.staged_refusals to %I', session_user);
end
$$;
grant execute on function rules.stage_targets to hf_producer, hf_worker, hf_operator;
