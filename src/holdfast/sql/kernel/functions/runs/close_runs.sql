-- Closes locked runs that have no live step. Calls the closing function of a machine first: it may add steps (the run
-- then continues) or choose another event.
create or replace function holdfast.close_runs(ids uuid[], clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  asked record;
  chosen text;
begin
  for asked in
    select r.id, r.machine, r.state, holdfast.closing_event(r) as event, c.closing
      from holdfast.runs r join holdfast.machines c on c.machine = r.machine
     where r.id = any (close_runs.ids) and c.closing is not null
  loop
    execute format('select %s($1, $2)', holdfast.face_name(asked.closing)) into chosen using asked.id, asked.event;
    if chosen is not null then
      perform holdfast.move_runs(array[asked.id], chosen, close_runs.clock);
    end if;
  end loop;
  for chosen in
    select distinct holdfast.closing_event(r) from holdfast.runs r where r.id = any (close_runs.ids)
  loop
    perform holdfast.move_runs(
      array(select r.id from holdfast.runs r join holdfast.machines c on c.machine = r.machine
             where r.id = any (close_runs.ids) and c.closing is null and holdfast.closing_event(r) = chosen),
      chosen, close_runs.clock);
  end loop;
end
$$;
