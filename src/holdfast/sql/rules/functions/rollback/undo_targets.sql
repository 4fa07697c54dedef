-- Moves the targets that some applied targets of rollbacks undo to ROLLED_BACK, each run's in the same call: the run
-- that they belong to is told by record_targets.
create or replace function rules.undo_targets(step_ids bigint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  undone constant bigint[] := array(
    select o.step_id
      from unnest(undo_targets.step_ids) u (step_id)
     cross join lateral (select t.run_id, t.item_id from rules.target_values t where t.step_id = u.step_id offset 0) v
     cross join lateral (select g.undoes from rules.run_facts g where g.run_id = v.run_id offset 0) f
     cross join lateral (select w.step_id from rules.target_values w
                          where w.run_id = f.undoes and w.item_id = v.item_id offset 0) o);
begin
  if undone <> '{}' then
    perform holdfast.set_actor('system', 'rollback', 'rolled back');
    perform holdfast.undo_steps(undone);
  end if;
end
$$;
