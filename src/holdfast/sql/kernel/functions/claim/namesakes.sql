-- Live workers that bear the name of `worker`: an identity is a name, a slash, and what is new with each start. They do
-- not disturb each other; who gave two processes one name by mistake wants to hear of it. Of the workers that the login
-- may see.
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
