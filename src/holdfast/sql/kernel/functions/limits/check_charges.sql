-- Refuses new steps that take more from a bucket than it ever holds (check_charge), with one look per sort of step.
create or replace function holdfast.check_charges(ids bigint[])
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set jit = off
as $$
begin
  if not exists (select from holdfast.limits) then
    return;
  end if;
  perform holdfast.check_charge(g.limits, g.weight, g.queue, g.kind, g.tenant)
     from (select s.limits, max(coalesce(s.weight, 1)) as weight, s.queue, s.kind, s.tenant
             from holdfast.steps s
            where s.id = any (check_charges.ids)
            group by s.limits, s.queue, s.kind, s.tenant) g;
end
$$;
