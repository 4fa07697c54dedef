-- Makes the two tables that a bulk start is copied into: pg_temp.staged_steps and pg_temp.staged_edges. They live as
-- long as the transaction. PostgreSQL refuses a COPY into holdfast.steps under row-level security.
create or replace function holdfast.stage_steps()
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  create temporary table if not exists staged_steps (
    id bigint,  -- one that the login reserved; if null, the step gets own_id
    kind text not null,
    input jsonb not null default '{}',
    name text,
    queue text,
    priority smallint not null default 0,
    due_at timestamptz,
    unique_key text,
    policy text,
    limits text[],
    weight numeric,
    batch_key text,
    own_id bigint not null default nextval('holdfast.step_ids')
  ) on commit drop;
  create temporary table if not exists staged_edges (step_id bigint not null, next_id bigint not null) on commit drop;
  perform holdfast.check_staging();
  -- uncompressed, so that pg_column_size gives the size of the JSON
  alter table pg_temp.staged_steps alter column input set storage external;
  -- Not on own_id: the column tells who chose an id.
  execute format('grant insert (id, kind, input, name, queue, priority, due_at, unique_key, policy, limits, '
                 'weight, batch_key) '
                 'on pg_temp.staged_steps to %I', session_user);
  execute format('grant insert on pg_temp.staged_edges to %I', session_user);
end
$$;
grant execute on function holdfast.stage_steps to hf_producer, hf_worker, hf_operator;
