-- Returns the sums of two objects of counts, name by name.
create or replace function rules.added(counts jsonb, others jsonb)
returns jsonb
language sql immutable
begin atomic
  select coalesce(jsonb_object_agg(t.name, t.counted), '{}')
    from (select e.name, sum(e.counted::bigint) as counted
            from (select * from jsonb_each_text(added.counts) union all select * from jsonb_each_text(added.others))
                 e (name, counted)
           group by e.name) t;
end;
