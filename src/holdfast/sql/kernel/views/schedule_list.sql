-- Schedules as people look at them: what they start, when (also in words), the next five ticks and the last one.
-- `state` is active, new (no worker has planned its ticks yet), paused, ended or broken.
create or replace view holdfast.schedule_list with (security_invoker = true) as
select s.name, s.tenant, s.face, s.target,
       case when s.broken is not null then 'broken' when s.ended_at is not null then 'ended'
            when s.paused_at is not null then 'paused' when s.next_at is null then 'new' else 'active' end as state,
       case when s.at is not null then 'once at ' || to_char(s.at at time zone s.timezone, 'YYYY-MM-DD HH24:MI:SS')
            when s.every is not null then 'every ' || (
              select string_agg(p.count || ' ' || p.unit || case when p.count = 1 then '' else 's' end, ' '
                                order by p.n)
                from (values (1, floor(extract(epoch from s.every) / 86400), 'day'),
                             (2, floor(mod(extract(epoch from s.every), 86400) / 3600), 'hour'),
                             (3, floor(mod(extract(epoch from s.every), 3600) / 60), 'minute'),
                             (4, trim_scale(mod(extract(epoch from s.every), 60)), 'second')) p (n, count, unit)
               where p.count > 0)
            else coalesce(s.words, 'cron ' || s.cron) end
         || case when s.every is null then ', ' || s.timezone else '' end as words,
       case when s.paused_at is null then s.next_at end as next_at,
       array(select u.at + s.shift from unnest(s.upcoming[1:5]) with ordinality u (at, n)
              where s.paused_at is null and s.broken is null order by u.n) as next_ticks,
       l.at as last_at, l.fired_at as last_fired_at, l.outcome as last_outcome, l.ids as last_ids,
       holdfast.error_text(l.error) as last_error,
       s.cron, s.every, s.at, s.timezone, s.starts_at, s.ends_at, s.missed, s.missed_window, s.overlap, s.spread,
       s.shift, s.input, s.options, s.paused_at, s.paused_by, s.pause_reason, s.broken, s.ended_at, s.defined_at
  from holdfast.schedules s
  left join lateral (
    select t.at, t.fired_at, t.outcome, t.ids, t.error from holdfast.ticks t
     where t.tenant = s.tenant and t.name = s.name
     order by t.at desc
     limit 1) l on true
 where coalesce(s.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select on holdfast.schedule_list to hf_producer, hf_worker, hf_reader, hf_operator;
