-- Makes the next steps of a run with a window due, until it has `window_size` live steps, and returns what count_lots
-- counts in the run, or null. Fires `queued` where the machine of the steps lists it, and `reopened` on steps that
-- failed and are to be retried. The caller has the run's lock (run_lock) and has called set_actor.
create or replace function holdfast.take_lot(run_id uuid, clock timestamptz)
returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_nestloop = on
set enable_hashjoin = off
set enable_mergejoin = off
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  run holdfast.runs;
  room int;
  lot record;
  fresh bigint[];
  again int := 0;
begin
  select r.* into run from holdfast.runs r where r.id = take_lot.run_id;
  room := least(run.window_size - run.live, run.first_left);
  if room <= 0 or run.to_admit = 0 or run.halt is not null or run.finished_at is not null then
    return null;
  end if;
  lot := holdfast.pick_lot(run, room);
  fresh := holdfast.make_due(lot.ids, take_lot.clock);
  if run.admits <> 'untried' then
    select count(*) into again
      from holdfast.move_steps(array(
             select (u.id, null, 'reopened', take_lot.clock, null, null, null)::holdfast.step_move
               from (select unnest(lot.ids) as id except select unnest(fresh)) u), take_lot.clock);
    perform holdfast.wake(array(select distinct s.queue from holdfast.steps s where s.id = any (lot.ids)));
  end if;
  return jsonb_build_object('run_id', run.id, 'fresh', to_jsonb(fresh), 'taken', cardinality(fresh) + again,
                            'reached', lot.reached, 'is_last', lot.is_last, 'admitted', cardinality(fresh) + again);
end
$$;
