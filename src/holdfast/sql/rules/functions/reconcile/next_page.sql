-- Returns the next targets of a part of a pass, at most `most`: those that are applied, and those whose outcome is
-- unknown. It looks at that many targets at a time, until there are enough to check. page_targets sets how its
-- statements are planned.
create or replace function rules.next_page(part rules.pass_parts, most int, out applied bigint[], out unknown bigint[])
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  place bigint := part.after;
  looked_at bigint[];
  more record;
begin
  applied := '{}';
  unknown := '{}';
  loop
    looked_at := array(
      select n.step_id from holdfast.run_steps n
       where n.run_id = part.run_id and n.step_id > place and n.step_id <= part.last
       order by n.step_id limit next_page.most);
    exit when looked_at = '{}';
    select array_agg(t.id) filter (where t.state = 'APPLIED') as applied,
           array_agg(t.id) filter (where t.state <> 'APPLIED') as unknown
      into more
      from (select s.id, s.state
              from holdfast.steps s
             where s.id = any (looked_at)
               and (s.state = 'APPLIED'
                    or (s.state in ('FAILED', 'QUEUED') and rules.is_unknown(s.error)))  -- guard: unknown
             order by s.id limit next_page.most - cardinality(applied) - cardinality(unknown)) t;
    applied := applied || more.applied;
    unknown := unknown || more.unknown;
    exit when cardinality(applied) + cardinality(unknown) >= next_page.most;  -- guard: full
    place := looked_at[cardinality(looked_at)];
  end loop;
end
$$;
