-- Counts targets of a run that were rolled back. The last one moves the run, and its failed targets leave the dead
-- letter. The row of the run's facts is the lock: of two settles the later one sees the count of the earlier one.
create or replace function rules.count_rolled_back(run_id uuid, targets int, event text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  counted int;
begin
  update rules.run_facts f set rolled_back = f.rolled_back + count_rolled_back.targets
   where f.run_id = count_rolled_back.run_id
  returning f.rolled_back into counted;
  if count_rolled_back.event = 'rolled_back'
     and counted >= (select r.succeeded from holdfast.runs r where r.id = count_rolled_back.run_id) then
    perform holdfast.undo_run(count_rolled_back.run_id, 'run_rolled_back');
  end if;
end
$$;
