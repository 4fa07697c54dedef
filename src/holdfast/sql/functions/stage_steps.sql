-- Makes the two tables that a bulk start is copied into: pg_temp.staged_steps and pg_temp.staged_edges. They live as long as
-- the transaction. COPY straight into holdfast.steps is refused under row-level security.
create or replace function holdfast.stage_steps()
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  create temporary table if not exists staged_steps (
    id bigint not null default nextval('holdfast.step_ids'),
    kind text not null,
    input jsonb not null default '{}',
    name text,
    queue text,
    priority smallint not null default 0,
    due_at timestamptz,
    unique_key text,
    policy text
  ) on commit drop;
  create temporary table if not exists staged_edges (step_id bigint not null, next_id bigint not null) on commit drop;
  perform holdfast.check_staging();
  alter table pg_temp.staged_steps alter column input set storage external;  -- uncompressed, so that its size can be told
  execute format('grant insert on pg_temp.staged_steps, pg_temp.staged_edges to %I', session_user);
end
$$;
