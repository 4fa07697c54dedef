-- Refuses a claim or renewal whose arguments make no sense.
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
    perform holdfast.refuse('RN005', format('a batch of %s is not possible', check_claim.batch),
                            'take 1 to 10000; 500 is fast', 'batch');
  end if;
  if check_claim.lease <= '0' then
    perform holdfast.refuse('RN005', format('a lease of %s is over before it begins', check_claim.lease),
                            'take a second or more', 'lease');
  end if;
  if check_claim.lease > '365 days' then
    perform holdfast.refuse('RN005',
                            format('with a lease of %s the steps of a dead worker would wait as long',
                                   check_claim.lease),
                            'take minutes, and renew it', 'lease');
  end if;
end
$$;
