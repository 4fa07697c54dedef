-- Returns a rule for people, such as "succeeded: 30 days" or "machine work.task, queue bulk: not at all".
create or replace function holdfast.rule_text(rule holdfast.retention_rules)
returns text
language sql stable
begin atomic
  select coalesce(
           nullif(concat_ws(', ', 'tenant ' || nullif(rule.tenant, '*'), 'machine ' || rule.machine,
                            'queue ' || rule.queue, rule.outcome, nullif(rule.what, 'runs')), ''),
           'all')
         || ': '
         || case when rule.keep is null then 'forever'
                 when rule.keep = '0' then 'not at all'
                 else (select string_agg(u.amount || ' ' || u.unit || case when u.amount = '1' then '' else 's' end, ' '
                                         order by u.no)
                         from (values (1, 'year', extract(year from rule.keep)::text),
                                      (2, 'month', extract(month from rule.keep)::text),
                                      (3, 'day', extract(day from rule.keep)::text),
                                      (4, 'hour', extract(hour from rule.keep)::text),
                                      (5, 'minute', extract(minute from rule.keep)::text),
                                      (6, 'second', trim_scale(extract(second from rule.keep))::text)
                              ) u (no, unit, amount)
                        where u.amount <> '0') end;
end;
grant execute on function holdfast.rule_text to hf_producer, hf_worker, hf_reader, hf_operator;
