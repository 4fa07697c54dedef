-- Returns the worker that holds the first of the leases that are still valid: the one that settles.
create or replace function holdfast.lease_holder(step_ids bigint[], lease_ids bigint[], others jsonb)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(
    (select s.lease_owner
       from unnest(lease_holder.step_ids, lease_holder.lease_ids) u (step_id, lease_id)
      cross join lateral (  -- offset 0: one by one and by primary key, whatever the statistics say
        select h.lease_owner from holdfast.steps h where h.id = u.step_id and h.lease_id = u.lease_id offset 0) s
      limit 1),
    (select s.lease_owner
       from jsonb_to_recordset(lease_holder.others) u (step_id bigint, lease_id bigint)
      cross join lateral (
        select h.lease_owner from holdfast.steps h where h.id = u.step_id and h.lease_id = u.lease_id offset 0) s
      limit 1),
    'nobody');
end
$$;
