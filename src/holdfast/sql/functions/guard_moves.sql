-- Writes the machines into CHECKs: the journal's (which moves are legal, and by whom) and the tables' (which columns go
-- with a state). Not valid, so that no table is read under the lock. Tells whether anything had to be changed.
create or replace function holdfast.guard_moves()
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  legal text;
  fits text;
  wanted text;
begin
  select 'check (case machine '
         || string_agg(format('when %L then (actor_kind || '' '' || from_state || '' '' || event || '' '' || to_state) = any (%L::text[])',
                              k.machine, k.keys::text), ' ' order by k.machine)
         || ' else false end or holdfast.refuse_move(machine, from_state, event, to_state, actor_kind, coalesce(step_id::text, run_id::text)))'
    into legal
    from (select m.machine, array_agg(m.key order by m.key) as keys
            from (select v.machine, format('%s %s %s %s', actor, v.from_state, v.event, v.to_state) as key
                    from holdfast.machine_moves v, unnest(v.actors) actor
                  union
                  select v.machine, format('user %s by_hand %s', v.from_state, v.to_state)
                    from holdfast.machine_moves v
                  union
                  select s.machine, format('%s new created %s', actor, s.state)
                    from holdfast.machine_states s, unnest(array['api', 'user', 'scheduler', 'system', 'worker']) actor
                   where s.is_initial) m
           group by m.machine) k;

  -- A step's lease and end go with its state; a run has no lease.
  for wanted, fits in
    select t.name,
           format('check ((machine || '' '' || state) = any (case %s when finished_at is not null then %L::text[] else %L::text[] end)'
                  || ' or holdfast.refuse_state(machine, state, id::text))',
                  case when t.name = 'steps' then format('when lease_id is not null then %L::text[]', t.held::text) else '' end,
                  t.over::text, t.free::text)
      from (select m.subject || 's' as name,
                   coalesce(array_agg(s.machine || ' ' || s.state order by s.machine, s.state) filter (where s.phase = 'held'), '{}') as held,
                   coalesce(array_agg(s.machine || ' ' || s.state order by s.machine, s.state)
                     filter (where s.phase in ('over', 'open_or_over')), '{}') as over,
                   coalesce(array_agg(s.machine || ' ' || s.state order by s.machine, s.state)
                     filter (where s.phase in ('shut', 'open', 'open_or_over') or (m.subject = 'run' and s.phase = 'held')), '{}') as free
              from holdfast.machine_states s join holdfast.machines m using (machine)
             group by m.subject) t
  loop
    perform holdfast.guard_table(wanted, 'state_fits_its_columns', fits);
  end loop;
  perform holdfast.guard_table('steps', 'input_is_small',
    $check$check (pg_column_size(input) <= 1048576
      or holdfast.refuse('RN011', 'an input has ' || pg_column_size(input) || ' bytes; 1048576 is the limit', 'keep it elsewhere and pass where it is'))$check$);
  return holdfast.guard_table('journal', 'legal_move', legal);
end
$$;
