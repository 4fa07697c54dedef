-- Whether a tick is needed however old it is: it is the last one of its schedule, or one of the last ten that started
-- something. While their work is not over, the next tick has to know of it (started_ids).
create or replace function holdfast.is_needed_tick(tick holdfast.ticks)
returns boolean
language sql stable
begin atomic
  select exists (select from holdfast.schedules s
                  where s.tenant = tick.tenant and s.name = tick.name
                    and (s.last_at = tick.at
                         or (tick.outcome = 'started' and 10 > (
                               select count(*)
                                 from (select from holdfast.ticks n
                                        where n.tenant = tick.tenant and n.name = tick.name and n.outcome = 'started'
                                          and n.fired_at > tick.fired_at
                                        limit 10) later))));
end;
