-- Refuses invalid staged steps and edges. What all rows leave out, and kinds that they share, take one scan.
create or replace function holdfast.check_staged()
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  seen record;
  stray bigint;
begin
  select max(pg_column_size(g.input)) as largest, max(g.priority) as highest, min(g.priority) as lowest,
         min(g.due_at) as first_due, max(g.due_at) as last_due, min(g.id) as first_id, max(g.id) as last_id,
         min(g.kind collate "C") as first_kind, max(g.kind collate "C") as last_kind,
         count(g.queue) > 0 as has_queues, count(g.policy) > 0 as has_policies,
         count(g.name) + count(g.unique_key) > 0 as has_names
    into seen
    from pg_temp.staged_steps g;
  if seen.largest > 1048576 then
    perform holdfast.refuse('RN011', format('an input must have at most 1048576 bytes, got %s', seen.largest),
                            'store it elsewhere and pass its address');
  end if;
  if seen.highest > 9 or seen.lowest < 0 then
    perform holdfast.refuse('RN005', format('priority must be 0 to 9, got %s',
                                            case when seen.highest > 9 then seen.highest else seen.lowest end),
                            'use 9 for the most urgent');
  end if;
  perform holdfast.check_due(seen.first_due);
  perform holdfast.check_due(seen.last_due);
  if seen.has_names then
    perform holdfast.check_name('the name of a step', o.name, 400), holdfast.check_name('unique_key', o.unique_key, 400)
       from (select min(g.name) filter (where not holdfast.is_name(g.name, 400)) as name,
                    min(g.unique_key) filter (where not holdfast.is_name(g.unique_key, 400)) as unique_key
               from pg_temp.staged_steps g) o;
  end if;
  perform holdfast.check_names('the name of a handler',
                               case when seen.first_kind = seen.last_kind then array[seen.first_kind]
                                    else array(select distinct g.kind from pg_temp.staged_steps g) end);
  if seen.has_queues then
    perform holdfast.check_names('queue', array(select distinct g.queue from pg_temp.staged_steps g
                                                 where g.queue is not null));
  end if;
  if seen.first_id is not null then
    perform holdfast.check_reserved(seen.first_id, seen.last_id);
  end if;
  if seen.has_policies then
    perform holdfast.check_policies(array(select distinct g.policy from pg_temp.staged_steps g
                                          where g.policy is not null));
  end if;
  if not exists (select from pg_temp.staged_edges) then
    return;
  end if;
  select min(e.next_id) into stray
    from pg_temp.staged_edges e left join pg_temp.staged_steps g on g.id = e.next_id where g.id is null;
  if stray is not null then
    perform holdfast.refuse('RN005', format('an edge leads to step %s, which is not staged', stray),
                            'stage the step that waits');
  end if;
end
$$;
