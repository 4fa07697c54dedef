-- How long the rows of a table are kept, by themselves: price changes for two years, stored events for six months,
-- previews that were never applied for seven days after they expired, passes that nobody serves for 30 days.
create or replace function rules.kept_for(name text)
returns interval
language sql immutable
begin atomic
  select case kept_for.name when 'ledger' then interval '2 years' when 'stored_events' then interval '6 months'
                            when 'previews' then interval '7 days'
                            when 'unserved_passes' then interval '30 days' end;
end;
