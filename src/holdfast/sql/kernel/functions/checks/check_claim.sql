-- Refuses invalid arguments of a claim or renewal.
create or replace function holdfast.check_claim(worker text, batch int, lease interval)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if holdfast.is_name(check_claim.worker) is not true then
    perform holdfast.check_name('worker', coalesce(check_claim.worker, ''));
  end if;
  if check_claim.batch is null or check_claim.batch not between 1 and 10000 then
    perform holdfast.refuse('RN005', format('batch must be 1 to 10000, got %s', check_claim.batch),
                            '500 is fast', 'batch');
  end if;
  if check_claim.lease <= '0' then
    perform holdfast.refuse('RN005', format('lease must be longer than 0, got %s', check_claim.lease),
                            'use a second or more', 'lease');
  end if;
  if check_claim.lease > '365 days' then
    perform holdfast.refuse('RN005', format('lease must be at most 365 days, got %s', check_claim.lease),
                            'use minutes and renew it: steps of a dead worker wait until its lease ends', 'lease');
  end if;
end
$$;
