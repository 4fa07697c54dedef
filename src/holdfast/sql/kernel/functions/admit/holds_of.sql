-- The states that are to count a step, as pick_admitted gives them; null if it is under no limit. Without `firsts` each
-- step has one. It is put into a query as it stands.
create or replace function holdfast.holds_of(step_id bigint, holders bigint[], firsts int[], held bigint[])
returns bigint[]
language sql immutable
begin atomic
  select case when holders[width_bucket(step_id, holders)] = step_id
              then case when firsts is null then array[held[width_bucket(step_id, holders)]]
                        else held[firsts[width_bucket(step_id, holders)]
                                  : firsts[width_bucket(step_id, holders) + 1] - 1] end end;
end;
