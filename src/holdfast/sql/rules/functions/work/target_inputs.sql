-- Returns what a handler needs to apply targets: their values, the run's correlation id and how many tries are left
-- (null: any number). Of a target that was tried before also what that left: whether its outcome is unknown, how many
-- rate limits in a row there were since the last manual retry, and how many manual retries. `only_reads`: the target is
-- read and not written. For a target of a rollback `undoes` has whether what it undoes was undone already, and the
-- newest change of the item since, if a run of ours made one. A worker calls it with the targets that it claimed.
create or replace function rules.target_inputs(step_ids bigint[])
returns table (step_id bigint, version text, input json)  -- json: it is written once, and only read
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set enable_bitmapscan = off
set jit = off
set plan_cache_mode = force_generic_plan  -- one plan is left: make it once, not per call
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  part record;  -- targets of one run under one policy: both are looked up once
begin
  for part in
    select f.tenant, f.channel, f.undoes, f.is_settling, f.metadata ->> 'correlationId' as correlation_id,
           (select p.tries from holdfast.step_policy(g.policy, g.kind, 'rules.target', f.tenant) p) as tries,
           g.ids, g.failures, g.errors
      from (select s.run_id, s.policy, s.kind, array_agg(s.id) as ids, array_agg(s.failures) as failures,
                   array_agg(s.error) as errors
              from holdfast.steps s
             where s.id = any (target_inputs.step_ids)
             group by s.run_id, s.policy, s.kind) g
     cross join lateral (select r.* from rules.run_facts r where r.run_id = g.run_id offset 0) f
     where holdfast.matches_any(allowed, f.tenant)
  loop
    return query
    select s.id, null::text,
           case when s.error is null and m.retries is null and part.undoes is null and not part.is_settling
                then row_to_json(v)
                else rules.later_input(to_jsonb(v), s.error, m.retries, part.is_settling, o.undoes) end
      from unnest(part.ids, part.failures, part.errors) s (id, failures, error)
     cross join lateral (
       select t.item_id, t.currency, t.price_before, t.price_after, t.compare_at_before, t.compare_at_after,
              t.writes_price, t.writes_compare_at, part.correlation_id, part.tries - s.failures as tries_left
         from rules.target_values t where t.step_id = s.id offset 0) v
      left join lateral (select k.retries from rules.target_marks k where k.step_id = s.id offset 0) m on true
      left join lateral (
        select jsonb_build_object('run_id', part.undoes, 'is_undone', h.state <> 'APPLIED', 'later', (
                 select case when l.step_id <> w.step_id then jsonb_build_object(
                          'run_id', l.run_id, 'unit_amount', l.price_after, 'compare_at', l.compare_at_after,
                          'at', l.at) end
                   from rules.ledger l
                  where l.tenant = part.tenant and l.channel = part.channel and l.item_id = v.item_id
                  order by l.id desc limit 1)) as undoes
          from (select x.step_id from rules.target_values x
                 where x.run_id = part.undoes and x.item_id = v.item_id offset 0) w
         cross join lateral (select g.state from holdfast.steps g where g.id = w.step_id offset 0) h
         where part.undoes is not null) o on true;
  end loop;
end
$$;
grant execute on function rules.target_inputs to hf_worker;
