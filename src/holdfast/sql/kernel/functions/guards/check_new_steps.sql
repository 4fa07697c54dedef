-- The INSERT trigger of steps: a new step breaks no rule (broken_rule), and is in an initial state, free and untried.
-- The check is an aggregate, because EXISTS would make the planner loop over the inserted rows. The same statement
-- finds out whether a machine has a `moved` function, which is called with its new steps.
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
  seen record;
begin
  select count(*) filter (where not o.is_sound) as odd, min(n.machine) filter (where not o.is_sound) as machine,
         min(n.state) filter (where not o.is_sound) as state,
         min(holdfast.broken_rule(n)) as broken,
         bool_or(n.machine = any (array(
           select c.machine from holdfast.machines c where c.moved is not null))) as is_told
    into seen
    from n
    left join holdfast.machine_states s on s.machine = n.machine and s.state = n.state
   cross join lateral (
     select s.is_initial is true  -- guard: initial
            and n.lease_id is null and n.finished_at is null and n.attempt = 0 and n.failures = 0 as is_sound) o;
  if seen.broken is not null then  -- guard: sound
    perform holdfast.refuse_broken(seen.broken);
  end if;
  if seen.odd > 0 then
    perform holdfast.refuse(
      'RN007', format('%s step cannot begin as %s', seen.machine, seen.state),
      'insert it in an initial state of its machine, without lease, attempt or end');
  end if;
  if seen.is_told then
    perform holdfast.call_moved(
       g.machine, array_agg((g.run_id, 'new', 'created', g.state, g.step_ids)::holdfast.shared_move))
       from (select n.machine, n.run_id, n.state, array_agg(n.id) as step_ids
               from n
              where n.machine = any (array(select c.machine from holdfast.machines c where c.moved is not null))
              group by n.machine, n.run_id, n.state) g
      group by g.machine;
  end if;
  return null;
end
$$;
