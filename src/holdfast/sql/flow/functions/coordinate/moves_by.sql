-- Lists the moves that a worker made on a task itself, in order: their ids, events and new states.
create or replace function flow.moves_by(task holdfast.runs, worker text)
returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  -- The bounds exclude the partitions of other months, with a day of slack because clocks are set back.
  earliest constant timestamptz := task.created_at - interval '1 day';
  latest constant timestamptz := holdfast.clock() + interval '1 day';
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object('id', j.id, 'event', j.event, 'state',
                                                 j.to_state) order by j.id), '[]')
      from holdfast.journal j
     where j.run_id = task.id and j.step_id is null and j.actor_kind = 'worker' and j.actor = moves_by.worker
       and j.at between earliest and latest);
end
$$;
