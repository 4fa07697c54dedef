-- Refuses a rule that cannot be one: an unknown machine or outcome, a queue of runs, a time below 0 or too long.
create or replace function holdfast.check_retention(
  what text, machine text, queue text, outcome text, keep interval default null)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  outcomes constant text[] := '{succeeded,failed,cancelled,partial,undone}';
  subject constant text := (select m.subject from holdfast.machines m where m.machine = check_retention.machine);
begin
  if check_retention.what is null or check_retention.what not in ('runs', 'journal', 'ticks') then
    perform holdfast.refuse('RN005', format('what must be runs, journal or ticks, got %s', check_retention.what),
                            'use runs for tasks and runs that are over', 'what');
  end if;
  if check_retention.what <> 'runs'
     and num_nonnulls(check_retention.machine, check_retention.queue, check_retention.outcome) > 0 then
    perform holdfast.refuse('RN005',
                            format('the rule of the %s has no machine, queue or outcome', check_retention.what),
                            'leave them out', 'what');
  end if;
  if check_retention.machine is not null and subject is null then
    perform holdfast.refuse('RN004', format('there is no machine %s', check_retention.machine),
                            'the machines are: ' || (select string_agg(m.machine, ', ' order by m.machine)
                                                       from holdfast.machines m), 'machine');
  end if;
  perform holdfast.check_name('queue', check_retention.queue);
  if subject = 'run' and check_retention.queue is not null then
    perform holdfast.refuse('RN005', format('runs of %s have no queue, got %s', check_retention.machine,
                                            check_retention.queue),
                            'leave the queue out: a run goes whole, whatever queues its steps were in', 'queue');
  end if;
  if check_retention.outcome <> all (outcomes) then
    perform holdfast.refuse('RN005', format('outcome must be one of %s, got %s', array_to_string(outcomes, ', '),
                                            check_retention.outcome), 'use failed', 'outcome');
  end if;
  if least(extract(year from check_retention.keep), extract(month from check_retention.keep),
           extract(day from check_retention.keep), extract(hour from check_retention.keep),
           extract(minute from check_retention.keep), extract(second from check_retention.keep)) < 0
     or check_retention.keep > interval '1000 years' then
    perform holdfast.refuse('RN005', format('keep must be 0 to 1000 years, got %s', check_retention.keep),
                            'use 0 to keep nothing, null to keep it forever', 'keep');
  end if;
  if check_retention.what = 'journal' and check_retention.keep < interval '1 month' then
    perform holdfast.refuse('RN005', format('the journal is kept for a month or longer, got %s', check_retention.keep),
                            'it goes by whole months: use 1 month', 'keep');
  end if;
end
$$;
