-- Does what set_actor does, for functions that are called often. PostgreSQL inlines it into an assignment, which costs
-- a fraction of a call. So it returns a value, which nobody reads.
create or replace function holdfast.as_actor(kind text default '', name text default '', reason text default '')
returns text
language sql volatile
begin atomic
  select set_config('holdfast.actor_kind', as_actor.kind, true)
      || set_config('holdfast.actor', as_actor.name, true)
      || set_config('holdfast.reason', coalesce(as_actor.reason, ''), true);
end;
