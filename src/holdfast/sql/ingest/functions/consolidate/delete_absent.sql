-- Marks the records that a full run did not bring as deleted, except for those that the source was asked for and still
-- has (`spared`) and those that the run quarantined, and returns their keys in the target. Refuses if more than the
-- feed's max_delete_ratio of its records would vanish. Call it in the transaction that soft-deletes them in the target
-- and settles the step.
create or replace function ingest.delete_absent(step_id bigint, lease_id bigint, spared text[] default '{}')
returns setof text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  held record;
  present bigint;
  absent text[];
  kept text[];
  ratio numeric;
begin
  held := ingest.held_consolidation(delete_absent.step_id, delete_absent.lease_id);
  if (held.facts).run_type <> 'full' or (held.facts).forced then  -- guard: whole
    return;
  end if;
  ratio := coalesce(((held.feed).settings ->> 'max_delete_ratio')::numeric, 0.5);
  kept := delete_absent.spared || array(
            select q.key from ingest.quarantined q
             where q.run_id = (held.facts).run_id and q.key is not null);  -- guard: quarantined
  select count(*), coalesce(array_agg(s.key) filter (
           where s.seen_no <> (held.facts).no and s.key <> all (kept)), '{}')
    into present, absent
    from ingest.sightings s
    join ingest.payloads p on p.feed_id = (held.feed).id and p.key = s.key and not p.deleted
   where s.feed_id = (held.feed).id;
  if cardinality(absent) > ratio * present then  -- guard: ratio
    perform holdfast.refuse(
      'RN010', format('%s of %s records are absent from the source, max_delete_ratio is %s', cardinality(absent),
                      present, ratio),
      'check the source; if they are really gone, raise max_delete_ratio and resume the consolidation');
  end if;
  update ingest.payloads p set deleted = true, changed_at = holdfast.clock()
   where p.feed_id = (held.feed).id and p.key = any (absent);
  update ingest.run_facts r set deleted = r.deleted + cardinality(absent)
   where r.run_id = (held.facts).run_id and absent <> '{}';
  return query
  select coalesce(s.target_key, s.key) from ingest.sightings s
   where s.feed_id = (held.feed).id and s.key = any (absent)
   order by s.key;
end
$$;
grant execute on function ingest.delete_absent to hf_worker;
