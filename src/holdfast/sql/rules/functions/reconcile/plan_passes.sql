-- Plans the passes that check a run which has just ended, in the transaction that ends it: the immediate one after a
-- minute or as soon as the channel shows what was written, the delayed one after an hour, and the first of the daily
-- ones unless they go on from an earlier end. A run that changed nothing is not checked.
create or replace function rules.plan_passes(facts rules.run_facts)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  run constant holdfast.runs := (select r from holdfast.runs r where r.id = facts.run_id);
  channel constant rules.known_channels := rules.channel_of(facts);
begin
  if channel.channel is null
     or (run.succeeded <= facts.rolled_back and facts.unknown = 0) then
    return;
  end if;
  perform rules.lock_passes(run.id);
  perform holdfast.set_actor('system', 'reconcile', 'the run ended');
  perform rules.plan_pass(facts, 'immediate', run.finished_at + least(
    greatest(interval '1 minute', channel.settles_within), interval '4 minutes'), channel.corrects);
  perform rules.plan_pass(facts, 'delayed', run.finished_at + interval '1 hour', channel.corrects);
  if not exists (select from rules.passes a join holdfast.runs r on r.id = a.pass_id
                  where a.run_id = run.id and a.pass = 'daily' and r.finished_at is null) then
    perform rules.plan_pass(facts, 'daily', run.finished_at + interval '1 day', channel.corrects);
  end if;
end
$$;
