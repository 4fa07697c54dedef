-- Returns the tenants that the login may act for; null means all. It goes by session_user, which neither SET ROLE nor a
-- SECURITY DEFINER function changes, and by a table that only the owner writes: the login's own rows, else those of the
-- roles that it is in. The setting holdfast.tenants may narrow them for a transaction, but never widen them.
create or replace function holdfast.allowed_tenants()
returns text[]
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  narrowed constant text := current_setting('holdfast.tenants', true);
  tenants text[] := coalesce(
    nullif(array(select t.tenant from holdfast.role_tenants t where t.role_name = session_user), '{}'),
    array(select t.tenant from holdfast.role_tenants t
           where pg_has_role(session_user, to_regrole(quote_ident(t.role_name)), 'member')));
begin
  if '*' = any (tenants) then
    tenants := null;
  elsif (select r.rolsuper from pg_roles r where r.rolname = session_user) then
    tenants := null;
  end if;
  if narrowed <> '' then  -- '' is left behind by a transaction that set it
    return holdfast.narrow_to_setting(tenants, narrowed);
  end if;
  return tenants;
end
$$;
grant execute on function holdfast.allowed_tenants to hf_producer, hf_worker, hf_reader, hf_operator;
