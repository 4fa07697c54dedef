-- Returns up to five cancelled steps of a run for an error message, as in '; cancelled: charge, ship', or an empty
-- text.
create or replace function holdfast.cancelled_names(run holdfast.runs)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select coalesce('; cancelled: ' || string_agg(c.name, ', ' order by c.id), '')
           || case when count(*) < run.cancelled then format(' and %s more', run.cancelled - count(*)) else '' end
      from (select s.id, coalesce(n.name, s.id::text) as name
              from holdfast.run_steps n
             cross join lateral (  -- offset 0: one by one and by primary key, whatever the statistics say
               select h.id, h.machine, h.state, h.finished_at from holdfast.steps h where h.id = n.step_id offset 0) s
              join holdfast.machine_states t on t.machine = s.machine and t.state = s.state
             where n.run_id = run.id and s.finished_at is not null and t.outcome = 'cancelled'
             limit 5) c);
end
$$;
