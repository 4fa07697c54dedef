-- Refuses staged targets that cannot be applied, with one scan. The kernel's own columns keep their defaults: a step of
-- another queue or kind would not be this channel's.
create or replace function rules.check_targets(channel text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  own_name constant text := 'rules:' || check_targets.channel;
  seen record;
  repeated text;
begin
  select count(*) filter (where o.is_odd is not false) as unnamed, min(g.item_id) filter (where o.is_odd) as odd_item,
         min(g.item_id) filter (where g.currency is null or g.currency !~ '^[A-Z]{3}$') as without_currency,
         min(g.item_id) filter (where g.price_before is null or g.price_after is null) as without_price,
         count(*) filter (where g.kind <> own_name or g.queue is distinct from own_name or g.name is not null
                             or g.unique_key is not null or g.due_at is not null or g.policy is not null
                             or g.input <> '{}') as foreign_steps
    into seen
    from pg_temp.staged_steps g
   cross join lateral (select not holdfast.is_name(g.item_id, 400) as is_odd offset 0) o;
  if seen.unnamed > 0 then
    perform holdfast.check_name('item_id', coalesce(seen.odd_item, ''), 400);
  end if;
  if seen.without_currency is not null then
    perform holdfast.refuse('RN005', format('item %s has no currency of three letters', seen.without_currency),
                            'use the code of ISO 4217, such as EUR', 'currency');
  end if;
  if seen.without_price is not null then
    perform holdfast.refuse('RN005', format('item %s has no price before or after', seen.without_price),
                            'stage it as a refusal', 'price_before');
  end if;
  if seen.foreign_steps > 0 or exists (select from pg_temp.staged_edges) then
    perform holdfast.refuse('RN005', format('%s staged targets set columns of steps', seen.foreign_steps),
                            'leave out kind, queue, name, unique_key, due_at, policy, input and edges');
  end if;
  if exists (select from pg_temp.staged_refusals) then  -- a refusal must not be bypassed by a second row of the item
    select min(g.item_id) into repeated
      from pg_temp.staged_steps g join pg_temp.staged_refusals r on r.item_id = g.item_id;
    if repeated is not null then
      perform holdfast.refuse('RN005', format('item %s is there twice, once to be changed and once refused', repeated),
                              'stage each item once', 'items');
    end if;
  end if;
end
$$;
