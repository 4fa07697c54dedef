-- Does what some outcomes ask for beyond their move: a retry that is not charged gives its try back, and a snoozed step
-- of a batch handler gets the key of the calls that it shares from now on.
create or replace function holdfast.adjust_settled(outcomes jsonb, settled holdfast.settled_step[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update holdfast.steps s
     set failures = s.failures - case when m.event = 'retried' and o.is_charged is false then 1 else 0 end,
         batch_key = case when m.event = 'snoozed' and s.batch_key is not null then coalesce(o.call_key, s.batch_key)
                          else s.batch_key end
    from unnest(adjust_settled.settled) m
    join jsonb_to_recordset(adjust_settled.outcomes) o (step_id bigint, is_charged boolean, call_key text)
      on o.step_id = m.step_id
   where s.id = m.step_id and (o.is_charged is false or o.call_key is not null);
end
$$;
