-- Says what a handler's steps get when their starter names nothing else: queue, policy, lease, timeout. Said again, it
-- replaces what was said; steps that are started already keep what they have: their queue, and
-- their policy if they got one. Lease and timeout, and the policy of those that got none, are as said last.
create or replace function holdfast.define_kind(
  kind text, queue text default null, policy text default null, lease interval default null, timeout interval default null)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_start(define_kind.kind, null, 0);
  perform holdfast.check_claim('kind', 1, define_kind.lease);
  perform holdfast.check_claim('kind', 1, define_kind.timeout);
  perform holdfast.check_policies(array_remove(array[define_kind.policy], null));
  insert into holdfast.kinds as k
  values (define_kind.kind, define_kind.policy, define_kind.lease, define_kind.timeout, define_kind.queue)
  on conflict on constraint kinds_pkey do update
    set policy = excluded.policy, lease = excluded.lease, timeout = excluded.timeout, queue = excluded.queue
    -- Each worker says it at its start; only what is new is written.
    where (k.policy, k.lease, k.timeout, k.queue) is distinct from (excluded.policy, excluded.lease, excluded.timeout, excluded.queue);
end
$$;
