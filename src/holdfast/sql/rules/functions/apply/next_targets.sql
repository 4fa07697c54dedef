-- Returns the next included targets of a run, which are to be admitted, after the target `after`, at most `most`.
create or replace function rules.next_targets(run_id uuid, after bigint, most int)
returns bigint[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by primary key, whatever the statistics say
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
set jit = off
as $$
declare
  facts rules.run_facts;
begin
  select f.* into strict facts from rules.run_facts f where f.run_id = next_targets.run_id;
  if not facts.includes_others then
    return array(select e.step_id from rules.exceptions e
                  where e.run_id = facts.run_id and e.step_id > next_targets.after
                  order by e.step_id limit next_targets.most);
  end if;
  return array(select n.step_id from holdfast.run_steps n
                where n.run_id = facts.run_id and n.step_id > next_targets.after
                  and not exists (select from rules.exceptions e
                                   where e.run_id = facts.run_id and e.step_id = n.step_id)
                order by n.step_id limit next_targets.most);
end
$$;
