-- Lets a limit or family whose rule is new count the steps that are held already: their `holds` name its states from
-- now on, and the steps' trigger counts them. The caller has locked the held steps and keeps claims from running.
create or replace function holdfast.count_holders(name text, tenant text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  step_ids bigint[];
  names text[];
begin
  select array_agg(s.id order by s.id, n.name), array_agg(n.name order by s.id, n.name) into step_ids, names
    from holdfast.steps s
   cross join lateral (
     select unnest(s.limits) as name
     union
     select unnest(array['queue:' || s.queue, 'kind:' || s.kind, 'tenant:' || s.tenant])) n
   where s.lease_until is not null
     and (count_holders.tenant = '*' or s.tenant = count_holders.tenant)
     and (n.name = count_holders.name
          or (count_holders.name like '%:*' and holdfast.limit_family(n.name) = count_holders.name));
  insert into holdfast.limit_states (name, tenant)
  select distinct u.name, count_holders.tenant from unnest(names) u (name) order by 1
  on conflict on constraint limit_states_name_tenant_key do nothing;
  perform holdfast.set_actor('system', 'limits');
  update holdfast.steps s
     set holds = coalesce(s.holds, '{}') || array(
           select i from unnest(c.ids) i where i <> all (coalesce(s.holds, '{}')))
    from (select u.step_id, array_agg(t.id order by t.id) as ids
            from unnest(step_ids, names) u (step_id, name)
            join holdfast.limit_states t on t.name = u.name and t.tenant = count_holders.tenant
           group by u.step_id) c
   where s.id = c.step_id and not coalesce(c.ids <@ s.holds, false);
  perform holdfast.set_actor();
end
$$;
