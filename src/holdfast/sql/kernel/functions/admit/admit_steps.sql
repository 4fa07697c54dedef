-- Decides which of the candidates, which the caller has locked, may be claimed under their limits: at most `wanted`, in
-- their order. What a limit refuses is parked on it. A step waits behind earlier ones that are parked on its limits,
-- and a step that is too heavy for a bucket keeps those behind it waiting. Charges the buckets. The first time in a
-- claim, `at` is null: it waits for states that others have locked, and reads the time of the charges under the locks.
-- After that it leaves the steps of states alone that others have locked or were charged after `at`. `pending` are the
-- limits of what the same claim has been granted before, one entry per step, which does not hold them yet. Where a
-- limit has room for less than twice what is wanted, no more than `free` of its steps are taken (null: any number), so
-- that slots and tokens do not lie idle in one worker. If `is_batched`, the steps are taken and refused in whole calls,
-- and `free` counts calls. A call that one of its limits could never take whole is cut to what fits, and a breaker's
-- probe is a call of one step. If the caller `charges_last` and the limits have room for many times what is wanted, the
-- candidates are admitted without a lock or a charge: then `is_charged_last` is set, and `at` is the time to charge at.
create or replace function holdfast.admit_steps(
  queue text, priority int, candidates bigint[], wanted int, pending bigint[], waits boolean, at timestamptz,
  free int default null, is_batched boolean default false, charges_last boolean default false)
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
  count constant int := cardinality(admit_steps.candidates);
  under record;
  room record;
  calls int[];           -- the place of the first step of each candidate's call; null: each has its own
  unit_count int := count;
  unit record;
  dues timestamptz[];       -- of the candidates, if steps are parked on their limits
  head_dues timestamptz[];  -- of the first step that is parked on each limit
  is_behind boolean;
  answer holdfast.admission;
  locked_ids bigint[];
  slots int[];
  purse numeric[];       -- tokens that are left, by limit
  shut boolean[];
  concurrency int[];     -- by limit
  probes bigint[];
  taken bigint[] := '{}';
  refused_ids bigint[] := '{}';
  refused_by bigint[] := '{}';
  refused_charges numeric[] := '{}';
  blocker int;
  narrowest int;         -- the limit that takes the fewest steps of a call now
  size int;
  fit int;               -- steps of a call that its limits take now
  cost numeric;
  is_cut boolean;        -- they could never take all of them
  tight boolean[];       -- by limit: fetch no more than there are free handlers
  is_tight boolean;
  limit_id bigint;
  no int;
begin
  select * into under from holdfast.limits_in_force(admit_steps.queue, admit_steps.candidates);
  answer.left_ids := '{}';
  answer.full_ids := '{}';
  answer.refused := 0;
  answer.tight := 0;
  answer.pending := '{}';
  answer.pair_steps := '{}';
  answer.pair_limits := '{}';
  if under.state_ids is null then  -- no candidate is under a limit
    answer.ids := admit_steps.candidates[1 : admit_steps.wanted];
    answer.at := coalesce(admit_steps.at, holdfast.clock());
    return answer;
  end if;
  if admit_steps.charges_last and under.is_shared and count <= admit_steps.wanted then
    answer.at := holdfast.clock();
    if holdfast.has_ample_room(under.state_ids, 10 * admit_steps.wanted, 10 * admit_steps.wanted, answer.at) then
      answer.is_charged_last := true;
      answer.ids := admit_steps.candidates;
      answer.shared := under.state_ids;
      return answer;
    end if;
  end if;
  if admit_steps.waits then
    perform from holdfast.limit_states t
      where t.id = any (under.state_ids) order by t.id for update;  -- guard: lock
    locked_ids := under.state_ids;
    answer.at := coalesce(admit_steps.at, holdfast.clock());  -- under the locks: later charges have a later time
  else
    answer.at := coalesce(admit_steps.at, holdfast.clock());
    locked_ids := array(
      select t.id from holdfast.limit_states t
       where t.id = any (under.state_ids)
         and (t.filled_at > answer.at) is not true  -- guard: charged
       order by t.id
         for update skip locked);
  end if;
  select * into room
    from holdfast.limit_room(
      admit_steps.queue, admit_steps.priority, admit_steps.candidates, admit_steps.wanted, locked_ids,
      case when under.is_shared then count
           when under.charges is null and cardinality(under.limit_ids) = cardinality(under.state_ids) then 1 end,
      under.limit_ids, under.pair_charges, under.families, under.tenants, under.has_exact,
      admit_steps.pending, answer.at);
  is_tight := room.is_tight and admit_steps.free is not null;
  if admit_steps.is_batched and (is_tight or room.fits is not true) then
    calls := holdfast.number_calls(admit_steps.candidates);
    unit_count := (select count(distinct c.call) from unnest(calls) c (call));
  end if;
  if room.fits and cardinality(room.ids) = cardinality(under.state_ids) and count <= admit_steps.wanted
     and (not is_tight or unit_count <= admit_steps.free) then
    answer.tight := case when is_tight then unit_count else 0 end;
    answer.ids := admit_steps.candidates;
    purse := room.rests;
    if under.is_shared then
      answer.shared := room.ids;
      foreach limit_id in array room.ids loop
        answer.pending := answer.pending || array_fill(limit_id, array[count]);
      end loop;
    else
      answer.pair_steps := under.step_ids;
      answer.pair_limits := under.limit_ids;
      answer.pending := under.limit_ids;
    end if;
  else
    if under.is_shared then
      select array_agg(c.id), array_agg(l.id) into under.step_ids, under.limit_ids
        from unnest(admit_steps.candidates) c (id) cross join unnest(under.state_ids) l (id);
    end if;
    slots := room.slots;
    purse := room.tokens;
    shut := room.is_shut;
    probes := array_fill(null::bigint, array[cardinality(slots)]);
    tight := array(select admit_steps.free is not null
                          and coalesce(u.slots < 2 * admit_steps.wanted or u.tokens < 2 * admit_steps.wanted, false)
                     from unnest(room.slots, room.tokens) u (slots, tokens));
    if admit_steps.is_batched then
      calls := coalesce(calls, holdfast.number_calls(admit_steps.candidates));
      concurrency := array(
        select r.concurrency
          from unnest(room.ids) with ordinality u (id, place)
         cross join lateral (select h.* from holdfast.limit_states h where h.id = u.id offset 0) t
          left join lateral holdfast.limit_rule(t.name, t.tenant) r on true
         order by u.place);
    end if;
    if exists (select from unnest(room.head_ids) h (id) where h.id is not null) then
      dues := array(select coalesce(s.due_at, s.parked_due_at)
                      from unnest(admit_steps.candidates) with ordinality u (id, ord)
                     cross join lateral (select h.* from holdfast.steps h where h.id = u.id offset 0) s
                     order by u.ord);
      head_dues := array(select case when s.priority > admit_steps.priority then '-infinity' else s.parked_due_at end
                           from unnest(room.head_ids) with ordinality u (id, ord)
                           left join lateral (select h.* from holdfast.steps h where h.id = u.id offset 0) s on true
                          order by u.ord);
    end if;
    for unit in
      select c.*, coalesce(p.places, '{}') as places, coalesce(p.is_away, false) as is_away
        from (select array_agg(g.id order by g.ord) as ids, array_agg(coalesce(g.charge, 1) order by g.ord) as charges,
                     array_agg(g.limited_by order by g.ord) as limited_by, min(g.ord) as ord
                from unnest(admit_steps.candidates, under.charges, under.limited_by)
                       with ordinality g (id, charge, limited_by, ord)
               group by coalesce(calls[g.ord], g.ord)) c
        left join (select u.step_id, array_agg(distinct s.place::int) filter (where s.place is not null) as places,
                          bool_or(s.place is null) as is_away
                     from unnest(under.step_ids, under.limit_ids) u (step_id, limit_id)
                     left join unnest(room.ids) with ordinality s (id, place) on s.id = u.limit_id
                    group by u.step_id) p on p.step_id = c.ids[1]  -- all steps of a call are under the same limits
       order by c.ord
    loop
      if unit.is_away then  -- another claim has one of its limits: the steps stay as they are
        answer.left_ids := answer.left_ids || unit.ids;
        continue;
      end if;
      blocker := null;
      narrowest := null;
      is_cut := false;
      is_tight := false;
      size := cardinality(unit.ids);
      fit := size;
      foreach no in array unit.places loop
        -- Not behind later steps: those that wait for two limits would wait behind each other, in two queues.
        is_behind := room.head_ids[no] is not null and unit.limited_by <> array_fill(room.ids[no], array[size])
                     and (head_dues[no], room.head_ids[no]) < (dues[unit.ord], unit.ids[1])  -- guard: order
        ;
        if shut[no] or slots[no] <= 0 then  -- guard: slots
          blocker := no;
          shut[no] := true;
        elsif is_behind then  -- guard: queue
          blocker := no;
        elsif purse[no] < least(unit.charges[1], room.bursts[no]) then  -- guard: tokens
          blocker := no;
          shut[no] := true;  -- guard: fifo
        end if;
        exit when blocker is not null;
        is_tight := is_tight or tight[no];
        if size > 1 then
          is_cut := is_cut or room.is_half_open[no]
                    or size > holdfast.fitting_steps(unit.charges, concurrency[no], room.bursts[no]);
          if room.is_half_open[no] then
            fit := 1;
            narrowest := no;
          elsif holdfast.fitting_steps(unit.charges, slots[no], purse[no]) < fit then
            fit := greatest(1, holdfast.fitting_steps(unit.charges, slots[no], purse[no]));
            narrowest := no;
          end if;
        end if;
      end loop;
      if blocker is null and is_tight and answer.tight >= admit_steps.free then  -- guard: free
        answer.left_ids := answer.left_ids || unit.ids;
        continue;
      end if;
      if blocker is null and fit < size then  -- the rest waits, and what is behind it too
        blocker := narrowest;
        shut[narrowest] := true;
        fit := case when is_cut then fit else 0 end;  -- guard: call
      elsif blocker is not null then
        fit := 0;
      end if;
      if blocker is not null then
        refused_ids := refused_ids || unit.ids[fit + 1 :];
        refused_by := refused_by || array_fill(room.ids[blocker], array[size - fit]);
        refused_charges := refused_charges || unit.charges[fit + 1 :];
      end if;
      if fit > 0 and cardinality(taken) + fit <= admit_steps.wanted then
        answer.tight := answer.tight + is_tight::int;
        taken := taken || unit.ids[1 : fit];
        cost := case when fit = 1 then unit.charges[1]
                     else (select sum(u.charge) from unnest(unit.charges[1 : fit]) u (charge)) end;
        foreach no in array unit.places loop
          slots[no] := slots[no] - fit;
          purse[no] := purse[no] - cost;
          if room.is_half_open[no] then
            shut[no] := true;  -- guard: probe
            probes[no] := unit.ids[1];
          end if;
        end loop;
      end if;
    end loop;
    answer.ids := taken;
    select coalesce(array_agg(u.step_id), '{}'), coalesce(array_agg(u.limit_id), '{}')
      into answer.pair_steps, answer.pair_limits
      from unnest(under.step_ids, under.limit_ids) u (step_id, limit_id)
      join unnest(taken) t (id) on t.id = u.step_id;
    answer.pending := answer.pair_limits;
  end if;
  if room.has_buckets or true = any (room.is_half_open) then
    update holdfast.limit_states t
       set tokens = u.rest, filled_at = greatest(t.filled_at, answer.at), bucket_at = coalesce(t.bucket_at, answer.at),
           probe_id = coalesce(u.probe, t.probe_id)
      from unnest(room.ids, room.tokens, purse, probes) u (id, before, rest, probe)
     where t.id = u.id and (u.rest < u.before or u.probe is not null);
  end if;
  if refused_ids <> '{}' then
    update holdfast.steps s
       set due_at = null, parked_due_at = coalesce(s.due_at, s.parked_due_at), parked_for = 'limit',
           limited_by = u.limit_id, charge = u.charge
      from unnest(refused_ids, refused_by, refused_charges) u (id, limit_id, charge)
     where s.id = u.id and s.limited_by is distinct from u.limit_id;
  end if;
  if room.is_awaited then
    perform holdfast.refresh_limits(room.ids, answer.at);
  end if;
  answer.refused := cardinality(refused_ids);
  if shut is not null then
    answer.full_ids := array(select u.id from unnest(room.ids, shut) u (id, is_shut) where u.is_shut);
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
