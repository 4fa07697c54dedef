-- A list has somebody who asked for it.
create or replace function toy.violations()
returns table (invariant text, subject text, detail text)
language sql stable
begin atomic
  select 'toy_has_an_asker', 'run ' || r.id, 'nobody asked for it'
    from holdfast.runs r where r.machine = 'toy.list' and r.input ->> 'asker' is null;
end;
grant execute on function toy.violations to hf_operator;
