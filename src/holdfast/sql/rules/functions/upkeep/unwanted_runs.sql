-- Returns previews that were never applied and that expired longer ago than they are kept, at most `most`.
create or replace function rules.unwanted_runs(most int)
returns uuid[]
language sql stable
begin atomic
  select array(select f.run_id
                 from rules.run_facts f join holdfast.runs r on r.id = f.run_id and r.state = 'PREVIEW'
                where f.selection is null
                  and f.expires_at < holdfast.clock() - rules.kept_for('previews')  -- guard: age
                order by f.expires_at
                limit unwanted_runs.most);
end;
