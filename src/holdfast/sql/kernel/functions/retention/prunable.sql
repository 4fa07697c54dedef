-- Counts what a sweep would remove now, by rule, and removes nothing. It looks at up to `most` tasks, runs and ticks,
-- the oldest first; `is_all` says whether that was all of them. Shows what the login may act for; keys and months,
-- which belong to nobody, only to a login for all tenants. It leaves out what faces remove by their own rules: rows of
-- their own, and runs that never began.
create or replace function holdfast.prunable(most int default 1000000)
returns table (what text, rule text, rows bigint, steps bigint, is_all boolean)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  look constant int := 10000;
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  youngest constant timestamptz := clock - holdfast.shortest_keep();
  above_step bigint := 0;
  above_run uuid := '00000000-0000-0000-0000-000000000000';
  looked int := 0;
  page record;
  found jsonb := '{}';  -- the rows and steps of each rule so far
  one record;
begin
  if prunable.most is null or prunable.most not between 1 and 100000000 then
    perform holdfast.refuse('RN005', format('most must be 1 to 100000000, got %s', prunable.most), 'use 1000000',
                            'most');
  end if;
  loop
    select max(w.id) as last_id, count(*)::int as seen, min(w.created_at) as oldest into page
      from (select s.id, s.created_at from holdfast.steps s where s.id > above_step order by s.id
             limit least(look, prunable.most - looked)) w;
    exit when page.seen = 0 or page.oldest > youngest or youngest is null;
    for one in
      select e.rule, count(*) as rows from holdfast.expired_steps(above_step, page.last_id, clock) e
       where holdfast.matches_any(allowed, e.tenant) group by e.rule
    loop
      found := jsonb_set(found, array[one.rule], to_jsonb(coalesce((found ->> one.rule)::bigint, 0) + one.rows));
    end loop;
    above_step := page.last_id;
    looked := looked + page.seen;
  end loop;
  return query select 'tasks', f.key, f.value::text::bigint, f.value::text::bigint, looked < prunable.most
                 from jsonb_each(found) f order by f.key;
  found := '{}';
  looked := 0;
  loop
    select (array_agg(w.id order by w.id desc))[1] as last_id, count(*)::int as seen, min(w.created_at) as oldest
      into page
      from (select r.id, r.created_at from holdfast.runs r where r.id > above_run order by r.id
             limit least(look, prunable.most - looked)) w;
    exit when page.seen = 0 or page.oldest > youngest or youngest is null;
    for one in
      select e.rule, count(*) as rows, sum(e.steps) as steps
        from holdfast.expired_runs(above_run, page.last_id, clock) e
       where holdfast.matches_any(allowed, e.tenant) group by e.rule
    loop
      found := jsonb_set(found, array[one.rule], jsonb_build_array(
        coalesce((found -> one.rule ->> 0)::bigint, 0) + one.rows,
        coalesce((found -> one.rule ->> 1)::bigint, 0) + one.steps));
    end loop;
    above_run := page.last_id;
    looked := looked + page.seen;
  end loop;
  return query select 'runs', f.key, (f.value ->> 0)::bigint, (f.value ->> 1)::bigint, looked < prunable.most
                 from jsonb_each(found) f order by f.key;
  return query
  select 'ticks', min(e.rule), count(*), null::bigint, min(e.among) < prunable.most
    from (select holdfast.rule_text(r) as rule, not holdfast.is_needed_tick(o.tick) as is_gone,
                 count(*) over () as among
            from holdfast.history_rule('ticks') r
           cross join lateral (select t as tick from holdfast.ticks t
                                where t.fired_at <= clock - r.keep and holdfast.matches_any(allowed, t.tenant)
                                order by t.fired_at limit prunable.most) o) e
   where e.is_gone
  having count(*) > 0;
  if allowed is null then
    return query
    select 'keys', 'key_for', count(*), null::bigint, count(*) < prunable.most
      from (select from holdfast.keys k where k.expires_at <= clock limit prunable.most) e
    having count(*) > 0
    union all
    select 'months', m.month, null, null, true from unnest(holdfast.old_months(clock)) m (month);
  end if;
end
$$;
grant execute on function holdfast.prunable to hf_operator;
