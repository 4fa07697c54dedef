-- Decides which of the candidates, which the caller has locked, may be claimed under their limits: at most `wanted`, in
-- their order. What a limit refuses is parked on it. A step is behind those that are parked on its limits already, and
-- a step that is too heavy for a bucket keeps those behind it waiting. Charges the buckets. With `waits` it waits for
-- states that others have locked; without, it leaves their steps alone. `pending` are the limits of what the same claim
-- has been granted before, one entry per step, which does not hold them yet. Where a limit has room for less than twice
-- what is wanted, no more than `free` of its steps are taken (null: any number), so that slots and tokens do not lie
-- idle in one worker.
create or replace function holdfast.admit_steps(
  queue text, priority int, candidates bigint[], wanted int, pending bigint[], waits boolean,
  free int default null)
returns holdfast.admission
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_nestloop = on
set enable_hashjoin = on
set enable_mergejoin = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = on
set jit = off
as $$
declare
  under record;
  room record;
  step record;
  answer holdfast.admission;
  state_ids bigint[];
  slots int[];
  purse numeric[];       -- tokens that are left, by limit
  shut boolean[];
  probes bigint[];
  taken int[] := '{}';   -- places among the candidates
  refused int[] := '{}';
  refused_by bigint[] := '{}';
  refused_charges numeric[] := '{}';
  blocker int;
  tight boolean[];       -- by limit: fetch no more than there are free handlers
  is_tight boolean;
  no int;
begin
  select * into under from holdfast.limits_in_force(admit_steps.queue, admit_steps.candidates);
  answer.left_ids := '{}';
  answer.full_ids := '{}';
  answer.refused := 0;
  answer.pending := '{}';
  if under.ords is null then  -- no candidate is under a limit
    answer.ids := admit_steps.candidates[1 : admit_steps.wanted];
    answer.at := holdfast.clock();
    return answer;
  end if;
  if admit_steps.waits then
    state_ids := array(select u.id from unnest(under.limit_ids) u (id) group by u.id);
    perform from holdfast.limit_states t
      where t.id = any (state_ids) order by t.id for update;  -- guard: lock
  end if;
  answer.at := holdfast.clock();  -- under the locks: what is charged later is charged at a later time
  select * into room
    from holdfast.limit_room(admit_steps.queue, admit_steps.priority, admit_steps.candidates, under.ords,
                             under.limit_ids, under.charges, admit_steps.pending, answer.at);
  answer.tight := 0;
  tight := array(select admit_steps.free is not null
                        and coalesce(u.slots < 2 * admit_steps.wanted or u.tokens < 2 * admit_steps.wanted, false)
                   from unnest(room.slots, room.tokens) u (slots, tokens));
  if room.fits and cardinality(admit_steps.candidates) <= admit_steps.wanted
     and (not true = any (tight) or cardinality(admit_steps.candidates) <= admit_steps.free) then
    answer.tight := case when true = any (tight) then cardinality(admit_steps.candidates) else 0 end;
    answer.ids := admit_steps.candidates;
    answer.pending := under.limit_ids;
    purse := room.rests;
  else
    slots := room.slots;
    purse := room.tokens;
    shut := room.is_shut;
    probes := array_fill(null::bigint, array[cardinality(slots)]);
    for step in
      select g.ord::int as ord, coalesce(g.charge, 1) as charge, g.limited_by,
             coalesce(p.places, '{}') as places, coalesce(p.is_away, false) as is_away
        from unnest(admit_steps.candidates, under.charges, under.limited_by)
               with ordinality g (id, charge, limited_by, ord)
        left join (select u.ord, array_agg(distinct s.place::int) filter (where s.place is not null) as places,
                          bool_or(s.place is null) as is_away
                     from unnest(under.ords, under.limit_ids) u (ord, limit_id)
                     left join unnest(room.ids) with ordinality s (id, place) on s.id = u.limit_id
                    group by u.ord) p on p.ord = g.ord
       order by g.ord
    loop
      if step.is_away then  -- another claim has one of its limits: the step stays as it is
        answer.left_ids := answer.left_ids || admit_steps.candidates[step.ord];
        continue;
      end if;
      blocker := null;
      is_tight := false;
      foreach no in array step.places loop
        if shut[no] or slots[no] <= 0 then  -- guard: slots
          blocker := no;
          shut[no] := true;
        elsif room.is_behind[no] and step.limited_by is distinct from room.ids[no] then  -- guard: queue
          blocker := no;
        elsif purse[no] < least(step.charge, room.bursts[no]) then  -- guard: tokens
          blocker := no;
          shut[no] := true;  -- guard: fifo
        end if;
        exit when blocker is not null;
        is_tight := is_tight or tight[no];
      end loop;
      if blocker is not null then
        refused := refused || step.ord;
        refused_by := refused_by || room.ids[blocker];
        refused_charges := refused_charges || step.charge;
      elsif is_tight and answer.tight >= admit_steps.free then  -- guard: free
        answer.left_ids := answer.left_ids || admit_steps.candidates[step.ord];
      elsif cardinality(taken) < admit_steps.wanted then
        answer.tight := answer.tight + is_tight::int;
        taken := taken || step.ord;
        answer.ids := answer.ids || admit_steps.candidates[step.ord];
        foreach no in array step.places loop
          slots[no] := slots[no] - 1;
          purse[no] := purse[no] - step.charge;
          if room.is_half_open[no] then
            shut[no] := true;  -- guard: probe
            probes[no] := admit_steps.candidates[step.ord];
          end if;
        end loop;
      end if;
    end loop;
    answer.pending := array(select u.limit_id
                              from unnest(under.ords, under.limit_ids) u (ord, limit_id)
                              join unnest(taken) t (ord) on t.ord = u.ord);
  end if;
  update holdfast.limit_states t
     set tokens = u.rest, filled_at = answer.at, bucket_at = coalesce(t.bucket_at, answer.at),
         probe_id = coalesce(u.probe, t.probe_id)
    from unnest(room.ids, room.tokens, purse, probes) u (id, before, rest, probe)
   where t.id = u.id and (u.rest < u.before or u.probe is not null);
  if refused <> '{}' then
    update holdfast.steps s
       set due_at = null, parked_due_at = coalesce(s.due_at, s.parked_due_at), parked_for = 'limit',
           limited_by = u.limit_id, charge = u.charge
      from unnest(array(select admit_steps.candidates[r] from unnest(refused) r), refused_by,
                  refused_charges) u (id, limit_id, charge)
     where s.id = u.id and s.limited_by is distinct from u.limit_id;
  end if;
  perform holdfast.refresh_limits(room.ids, answer.at);
  answer.ids := coalesce(answer.ids, '{}');
  answer.refused := cardinality(refused);
  answer.full_ids := array(select u.id from unnest(room.ids, shut) u (id, is_shut) where u.is_shut);
  if cardinality(answer.ids) = cardinality(admit_steps.candidates) and cardinality(under.limit_ids)
     = cardinality(room.ids) * cardinality(admit_steps.candidates) then  -- each is under each: one array for all
    answer.shared := room.ids;
  else
    select jsonb_object_agg(admit_steps.candidates[p.ord], p.holds) into answer.holds
      from (select u.ord, array_agg(u.limit_id)::text as holds
              from unnest(under.ords, under.limit_ids) u (ord, limit_id)
              join (select g.ord::int as ord
                      from unnest(admit_steps.candidates) with ordinality g (id, ord)
                      join unnest(answer.ids) a (id) on a.id = g.id) t on t.ord = u.ord
             group by u.ord) p;
  end if;
  if under.charges is not null then
    select jsonb_object_agg(c.id, c.charge) into answer.charges
      from unnest(admit_steps.candidates, under.charges) c (id, charge)
      join unnest(answer.ids) a (id) on a.id = c.id
     where c.charge <> 1;
  end if;
  return answer;
end
$$;
