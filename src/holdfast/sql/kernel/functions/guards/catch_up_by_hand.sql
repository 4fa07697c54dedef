-- Catches up after a change by hand: admits children of steps that finished, recounts runs, closes those without live
-- steps and reopens those with some. Slow and thorough; the kernel's own functions count as they go.
create or replace function holdfast.catch_up_by_hand(moved bigint[], run_ids uuid[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
begin
  if catch_up_by_hand.run_ids = '{}' then
    return;
  end if;
  perform holdfast.set_actor('system', 'by_hand', format('after a change by %s', session_user));
  perform holdfast.admit_children(
    array(select s.id from holdfast.steps s
            join holdfast.machine_states t on t.machine = s.machine and t.state = s.state
           where s.id = any (catch_up_by_hand.moved) and s.finished_at is not null and t.outcome = 'succeeded'), clock);
  perform holdfast.tally_runs(
    array(select (r.id, c.total - r.total, c.live - r.live, c.succeeded - r.succeeded, c.failed - r.failed,
                  c.cancelled - r.cancelled)::holdfast.run_delta
            from holdfast.runs r, lateral holdfast.count_steps(r.id) c
           where r.id = any (catch_up_by_hand.run_ids)), clock);
  perform holdfast.move_runs(
    array(select r.id from holdfast.runs r
           where r.id = any (catch_up_by_hand.run_ids) and r.live > 0
             and r.finished_at is not null and r.moving is null),
    'reopened', clock);
  perform holdfast.set_actor();
end
$$;
