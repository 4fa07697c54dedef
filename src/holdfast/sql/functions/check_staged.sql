-- Refuses staged steps and edges that make no sense, with one look at each table.
create or replace function holdfast.check_staged()
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  largest int;
  longest int;
  shortest int;
  highest int;
  lowest int;
  last_id bigint;
  first_id bigint;
  stray bigint;
begin
  select max(pg_column_size(g.input)), max(length(g.kind)), min(length(g.kind)), max(g.priority), min(g.priority), max(g.id), min(g.id)
    into largest, longest, shortest, highest, lowest, last_id, first_id
    from pg_temp.staged_steps g;
  if largest > 1048576 then
    perform holdfast.refuse('RN011', format('an input has %s bytes; 1048576 is the limit', largest), 'keep it elsewhere and pass where it is');
  end if;
  if longest > 200 or shortest < 1 then
    perform holdfast.refuse('RN005', 'a start needs the name of its handler, of 1 to 200 characters');
  end if;
  if highest > 9 or lowest < 0 then
    perform holdfast.refuse('RN005', 'a priority of the staged steps is not possible', 'take 0 to 9; higher goes first');
  end if;
  if first_id < 1 or last_id > (select q.last_value from holdfast.step_ids q) then
    perform holdfast.refuse('RN005', 'a staged step has an id that was not given out', 'take ids from holdfast.reserve_step_ids()');
  end if;
  perform holdfast.check_policies(array(select distinct g.policy from pg_temp.staged_steps g where g.policy is not null));
  select min(e.next_id) into stray
    from pg_temp.staged_edges e left join pg_temp.staged_steps g on g.id = e.next_id where g.id is null;
  if stray is not null then
    perform holdfast.refuse('RN005', format('step %s is not staged and cannot be made to wait', stray), 'an edge leads to a staged step');
  end if;
end
$$;
