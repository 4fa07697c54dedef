-- Keeps toy.counts, from what the kernel says has moved. It announces an actor, as one that moves steps itself would.
create or replace function toy.count_rows(moves holdfast.shared_move[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.set_actor('system', 'toy');
  insert into toy.counts as c (subject, list_id, state, rows)
  select case when m.step_ids is null then 'list' else 'wish' end, coalesce(m.run_id::text, ''), u.state,
         sum(u.sign * coalesce(cardinality(m.step_ids), 1))
    from unnest(count_rows.moves) m, lateral (values (m.from_state, -1), (m.to_state, 1)) u (state, sign)
   where u.state <> 'new'
   group by 1, 2, 3
  on conflict (subject, list_id, state) do update set rows = c.rows + excluded.rows;
  perform holdfast.set_actor();
end
$$;
