-- Records what a webhook delivered and what became of it. A delivery that is known already stays as it was recorded.
create or replace function ops.record_delivery(
  p_source text, p_delivery text, p_event text, p_outcome text, p_repository text default null,
  p_git_ref text default null, p_git_sha text default null, p_run_ids text[] default '{}',
  p_tenant text default 'default')
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_tenant(p_tenant);
  perform holdfast.check_name('source', coalesce(p_source, ''), 100);
  perform holdfast.check_name('delivery', coalesce(p_delivery, ''), 400);
  perform holdfast.check_name('event', coalesce(p_event, ''), 100);
  perform holdfast.check_name('outcome', coalesce(p_outcome, ''));
  insert into ops.deliveries (tenant, source, delivery, event, repository, git_ref, git_sha, outcome, run_ids,
                              received_at)
  values (p_tenant, p_source, p_delivery, p_event, left(p_repository, 400), left(p_git_ref, 400), left(p_git_sha, 200),
          p_outcome, coalesce(p_run_ids, '{}'), holdfast.clock())
  on conflict do nothing;
end
$$;
grant execute on function ops.record_delivery to hf_producer, hf_worker, hf_operator;
