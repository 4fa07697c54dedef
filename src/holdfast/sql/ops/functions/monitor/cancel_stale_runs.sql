-- Cancels stale runs, as sweep_runs does, and answers {"cancelled": n}.
create or replace function ops.cancel_stale_runs()
returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return (select jsonb_build_object('cancelled', count(*)) from ops.sweep_runs());
end
$$;
grant execute on function ops.cancel_stale_runs to hf_worker, hf_operator;
