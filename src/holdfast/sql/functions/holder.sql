-- Who holds the first of the leases that still stands: the worker that settles.
create or replace function holdfast.holder(step_ids bigint[], lease_ids bigint[], others jsonb)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(
    (select s.lease_owner
       from unnest(holder.step_ids, holder.lease_ids) u (step_id, lease_id)
       join holdfast.steps s on s.id = u.step_id and s.lease_id = u.lease_id
      limit 1),
    (select s.lease_owner
       from jsonb_to_recordset(holder.others) u (step_id bigint, lease_id bigint)
       join holdfast.steps s on s.id = u.step_id and s.lease_id = u.lease_id
      limit 1),
    'nobody');
end
$$;
