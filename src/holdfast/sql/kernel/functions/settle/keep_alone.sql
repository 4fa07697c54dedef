-- Keeps steps of batch handlers out of shared calls from now on: their call lost its worker or ran out of time, and one
-- bad item must not take the others to the dead letter.
create or replace function holdfast.keep_alone(ids bigint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update holdfast.steps s
     set alone = true
   where s.id = any (keep_alone.ids) and s.batch_key is not null and s.alone is null;
end
$$;
