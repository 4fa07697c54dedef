-- The steps' INSERT trigger: only initial states can be inserted, free and untried. By set, as an aggregate: EXISTS would
-- make the planner loop over the inserted rows.
create or replace function holdfast.check_new_steps()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_hashjoin = on
set enable_seqscan = on
set enable_nestloop = off
set jit = off
as $$
declare
  culprit record;
begin
  select count(*) as found, min(n.machine) as machine, min(n.state) as state
    into culprit
    from n
    left join holdfast.machine_states s on s.machine = n.machine and s.state = n.state
   where s.is_initial is not true  -- guard: initial
      or n.lease_id is not null or n.finished_at is not null or n.attempt <> 0 or n.failures <> 0;
  if culprit.found > 0 then
    perform holdfast.refuse(
      'RN007', format('%s step cannot begin as %s', culprit.machine, culprit.state),
      'a new step is in an initial state of its machine, with no lease, no attempt and no end');
  end if;
  return null;
end
$$;
