-- Who asked for the wishes of these steps, as an argument for their handlers.
create or replace function toy.askers(step_ids bigint[])
returns table (step_id bigint, version text, input jsonb)
language sql stable
begin atomic
  select s.id, null::text, jsonb_build_object('asker', r.input ->> 'asker')
    from holdfast.steps s join holdfast.runs r on r.id = s.run_id
   where s.id = any (askers.step_ids);
end;
grant execute on function toy.askers to hf_worker;
