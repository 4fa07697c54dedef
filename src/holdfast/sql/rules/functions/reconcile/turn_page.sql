-- Stores what a step of a pass found on a page, as record_page does, and returns the next targets as page_targets does:
-- at most `most` (0: none). Returns none, too, if the next page is to be read under another claim: then the worker
-- settles the step with `continue`. A worker calls it in a transaction of its own. The page and the position after it
-- are one commit, which does not wait for the disk if nothing was found: a page that is lost is read again.
create or replace function rules.turn_page(
  step_id bigint, lease_id bigint, upto bigint, checked int, superseded int, findings jsonb, most int)
returns table (
  target_id bigint, item_id text, currency text, price_before bigint, compare_at_before bigint, expected bigint,
  expected_compare_at bigint, writes_price boolean, writes_compare_at boolean, standing text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if turn_page.findings = '[]' then  -- guard: events; their numbers must not be given out twice
    perform set_config('synchronous_commit', 'off', true);
  end if;
  perform rules.record_page(turn_page.step_id, turn_page.lease_id, turn_page.upto, turn_page.checked,
                            turn_page.superseded, turn_page.findings);
  if turn_page.most > 0 and rules.may_read_on(turn_page.step_id) then  -- guard: smooth
    return query select t.* from rules.page_targets(turn_page.step_id, turn_page.lease_id, turn_page.most) t;
  end if;
end
$$;
grant execute on function rules.turn_page to hf_worker;
