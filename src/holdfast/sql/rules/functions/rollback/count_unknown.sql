-- Returns how many targets of a run failed without anybody knowing whether their price was written.
create or replace function rules.count_unknown(run_id uuid)
returns int
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (select count(*) from rules.unknown_targets(count_unknown.run_id));
end
$$;
