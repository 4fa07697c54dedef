-- Refuses the first of a request's fields that cannot be right.
create or replace function ops.refuse_request(
  project_id text, env text, kind text, git_sha text, git_ref text, key text, actor text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_name('project_id', coalesce(refuse_request.project_id, ''));
  perform holdfast.check_name('env', coalesce(refuse_request.env, ''), 100);
  perform holdfast.check_name('kind', refuse_request.kind, 100);
  perform holdfast.check_name('git_sha', refuse_request.git_sha);
  perform holdfast.check_name('git_ref', refuse_request.git_ref, 400);
  perform holdfast.check_name('idempotency_key', refuse_request.key, 400);
  perform holdfast.check_name('actor', refuse_request.actor);
end
$$;
