-- Returns live workers with the same name as `worker`, among those that the login may see. An identity is a name, a
-- slash and a part that is new with each start. Namesakes do not disturb each other, but one name for two processes is
-- probably a mistake.
create or replace function holdfast.namesakes(worker text)
returns setof text
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
begin
  perform holdfast.check_name('worker', namesakes.worker);
  return query
  select distinct w.worker
    from holdfast.workers w
   where regexp_replace(w.worker, '/[^/]*$', '') = regexp_replace(namesakes.worker, '/[^/]*$', '')
     and w.worker <> namesakes.worker and holdfast.worker_standing(w.seen_at, clock) = 'alive'
     and holdfast.is_own_worker(w.tenants, allowed);
end
$$;
grant execute on function holdfast.namesakes to hf_worker;
