-- Adds up to a thousand rows of figures to the one of their tenant and channel, so that connections which are gone
-- leave no rows behind. A row that its connection is changing right now stays for the next time.
create or replace function rules.fold_figures()
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  part rules.figures;
begin
  for part in
    with chosen as (
      select f.tenant, f.channel, f.slot from rules.figures f where f.slot <> 0
       order by f.tenant, f.channel, f.slot limit 1000
         for update skip locked)
    delete from rules.figures f using chosen c
     where f.tenant = c.tenant and f.channel = c.channel and f.slot = c.slot
    returning f.*
  loop
    insert into rules.figures as g
    values (part.tenant, part.channel, 0, part.applies, part.ended, part.duration_ms, part.durations,
            part.success_rate, part.rated_at, part.retries, part.rate_limits)
    on conflict (tenant, channel, slot) do update
      set applies = g.applies + excluded.applies, ended = g.ended + excluded.ended,
          duration_ms = g.duration_ms + excluded.duration_ms,
          durations = rules.added(g.durations, excluded.durations),
          success_rate = case when excluded.rated_at > coalesce(g.rated_at, '-infinity') then excluded.success_rate
                              else g.success_rate end,
          rated_at = greatest(g.rated_at, excluded.rated_at),
          retries = g.retries + excluded.retries, rate_limits = g.rate_limits + excluded.rate_limits;
  end loop;
end
$$;
