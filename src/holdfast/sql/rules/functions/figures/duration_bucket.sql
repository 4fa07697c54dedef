-- Returns the bucket of a duration in the histogram: its upper bound in milliseconds, or `more`.
create or replace function rules.duration_bucket(took bigint)
returns text
language sql immutable
begin atomic
  select coalesce((select min(b.bound)::text
                     from unnest('{1000,5000,15000,60000,300000,900000,3600000,14400000,86400000}'::bigint[]) b (bound)
                    where duration_bucket.took <= b.bound), 'more');
end;
