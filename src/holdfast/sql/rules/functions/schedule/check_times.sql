-- Refuses times of rules.apply_at that cannot be kept: in the past, in the wrong order, or after the plan expires.
-- Refuses a run that cannot be applied then, or of which nothing will be left to undo.
create or replace function rules.check_times(facts rules.run_facts, at timestamptz, revert_at timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  state constant text := (select r.state from holdfast.runs r where r.id = facts.run_id);
begin
  perform holdfast.check_due(check_times.at);
  perform holdfast.check_due(check_times.revert_at);
  if num_nonnulls(check_times.at, check_times.revert_at) = 0 then
    perform holdfast.refuse('RN005', 'at and revert_at are both missing', 'use rules.apply to apply it now', 'at');
  end if;
  if check_times.at <= clock then
    perform holdfast.refuse('RN005', format('at must be in the future, got %s', check_times.at),
                            'leave it out to apply the plan now', 'at');
  end if;
  if check_times.revert_at <= coalesce(check_times.at, clock) then  -- guard: order
    perform holdfast.refuse('RN005', format('revert_at must be after %s, got %s',
                                            case when check_times.at is null then 'now' else 'at' end,
                                            check_times.revert_at), 'use a later time', 'revert_at');
  end if;
  if check_times.at >= facts.expires_at then  -- guard: expires
    perform holdfast.refuse('RN005', format('the plan of run %s expires at %s, before %s', facts.run_id,
                                            facts.expires_at, check_times.at),
                            'preview again with a longer expires_in, at most 30 days', 'at');
  end if;
  if check_times.at is not null and state <> 'PREVIEW' then
    perform holdfast.refuse('RN010', format('run %s is %s: it was applied before', facts.run_id, state),
                            'leave out at; preview again to apply it once more', facts.run_id::text);
  end if;
  if state in ('FAILED', 'ROLLED_BACK') then
    perform holdfast.refuse('RN010', format('run %s is %s: there is nothing to undo', facts.run_id, state),
                            'leave out revert_at', facts.run_id::text);
  end if;
end
$$;
