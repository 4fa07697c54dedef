-- Sets or ends (null) the pause of a limit or family for some tenants' rules. Ending it closes its breakers too.
create or replace function holdfast.set_pause(
  name text, tenants text[], until timestamptz, actor text, reason text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  is_family constant boolean := set_pause.name like '%:*';
  keeps_own constant boolean := is_family and set_pause.until is not null;  -- the family's stands in its rule
  ids bigint[];
begin
  if not is_family and set_pause.until is not null then
    insert into holdfast.limit_states (name, tenant)
    select set_pause.name, u.tenant from unnest(set_pause.tenants) u (tenant) order by 2
    on conflict on constraint limit_states_name_tenant_key do nothing;
  end if;
  ids := array(
    select s.id
      from holdfast.limit_states s
     where s.tenant = any (set_pause.tenants)
       and case when is_family then holdfast.limit_family(s.name) = set_pause.name else s.name = set_pause.name end
     order by s.id
       for update);
  if is_family then
    update holdfast.limits r
       set paused_until = set_pause.until, paused_by = set_pause.actor, pause_reason = set_pause.reason
     where r.name = set_pause.name and r.tenant = any (set_pause.tenants);
  end if;
  if cardinality(ids) = 0 and not exists (
       select from holdfast.limits r where r.name = set_pause.name and r.tenant = any (set_pause.tenants)) then
    perform holdfast.refuse('RN004', format('there is no limit %s', set_pause.name),
                            'holdfast.limit_list lists them; define_limit makes one');
  end if;
  update holdfast.limit_states s
     set paused_until = case when keeps_own then s.paused_until else set_pause.until end,
         paused_by = case when keeps_own then s.paused_by else set_pause.actor end,
         pause_reason = case when keeps_own then s.pause_reason else set_pause.reason end,
         failures = case when set_pause.until is null then 0 else s.failures end,
         open_until = case when set_pause.until is not null then s.open_until end,
         open_for = case when set_pause.until is not null then s.open_for end,
         probe_id = case when set_pause.until is not null then s.probe_id end
   where s.id = any (ids);
  perform holdfast.refresh_limits(ids, holdfast.clock());
end
$$;
