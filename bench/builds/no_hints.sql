-- A build for bench/sections/producers.py, never a switch of the product: nobody is told of what is started.
create or replace function holdfast.wake(queues text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
end
$$;
