#!/usr/bin/env bash
# A batch worker for rules on top of psql: claims targets of a channel, compares and sets their prices in a table with
# one UPDATE per batch, and settles all outcomes with one call. It works until nothing is due, then exits.
#
#   HOLDFAST_DSN=… SHOP_DSN=… examples/rules_worker.sh CHANNEL [BATCH]
#
# SHOP_DSN is the database with the table products (sku, price, compare_at), in minor units. It may be another server:
# the write and the settle are two transactions. If the worker dies between them, the next try finds the new price.
set -euo pipefail

channel=${1:?the name of a channel}
batch=${2:-50}
worker="bash-$(hostname)-$$-$(date +%s)"
tab=$'\t'

ask() { "${PSQL:-psql}" "$1" --no-psqlrc --quiet --no-align --tuples-only --field-separator="$tab" -v ON_ERROR_STOP=1 "${@:2}"; }

# One line per target: step, lease, item, price before and after, compare-at before and after, what is written.
claim() {
  ask "$HOLDFAST_DSN" -v worker="$worker" -v queue="rules:$channel" -v batch="$batch" <<'SQL'
with claimed as materialized (
  select c.step_id, c.lease_id from holdfast.claim_steps(:'worker', :'queue', array[:'queue'], batch => :batch) c)
select c.step_id, c.lease_id, t.input ->> 'item_id', t.input ->> 'price_before', t.input ->> 'price_after',
       coalesce(t.input ->> 'compare_at_before', '\N'), coalesce(t.input ->> 'compare_at_after', '\N'),
       t.input ->> 'writes_price', t.input ->> 'writes_compare_at'
  from claimed c
  join rules.target_inputs(array(select step_id from claimed)) t on t.step_id = c.step_id
 order by c.step_id;
SQL
}

# Writes what still shows the price before, and answers with the outcomes as JSON.
write() {
  ask "$SHOP_DSN" -c "
    begin;
    create temporary table wanted (
      step_id bigint, lease_id bigint, sku text, price_before bigint, price_after bigint, compare_at_before bigint,
      compare_at_after bigint, writes_price boolean, writes_compare_at boolean) on commit drop" \
    -c '\copy wanted from pstdin' -c "
    with written as (
      update products p
         set price = case when w.writes_price then w.price_after else p.price end,
             compare_at = case when w.writes_compare_at then w.compare_at_after else p.compare_at end
        from wanted w
       where p.sku = w.sku and (not w.writes_price or p.price = w.price_before)
         and (not w.writes_compare_at or p.compare_at is not distinct from w.compare_at_before)
      returning w.step_id)
    select jsonb_agg(jsonb_build_object('step_id', w.step_id, 'lease_id', w.lease_id) || case
             when d.step_id is not null then '{\"outcome\": \"done\", \"result\": {\"effect\": \"written\"}}'
             when (not w.writes_price or p.price = w.price_after)
                  and (not w.writes_compare_at or p.compare_at is not distinct from w.compare_at_after)
                  and p.sku is not null
             then '{\"outcome\": \"done\", \"result\": {\"effect\": \"found\"}}'
             else jsonb_build_object('outcome', 'fail', 'error', jsonb_build_object(
               'class', case when p.sku is null then 'NOT_FOUND' else 'VALIDATION' end,
               'reason', case when p.sku is null then 'not_found' else 'stale' end,
               'message', case when p.sku is null then 'there is no such item' else 'the price has changed' end,
               'found', jsonb_build_object('unit_amount', p.price, 'compare_at', p.compare_at))) end)
      from wanted w left join products p on p.sku = w.sku left join written d on d.step_id = w.step_id;
    commit"
}

settle() {
  ask "$HOLDFAST_DSN" -v outcomes="$1" <<'SQL'
select count(*) || ' settled as ' || event from holdfast.settle_steps(:'outcomes') group by event order by event;
SQL
}

while targets=$(claim) && [ -n "$targets" ]; do
  settle "$(write <<<"$targets")"
done
