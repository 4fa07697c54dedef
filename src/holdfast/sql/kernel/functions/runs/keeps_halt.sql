-- Whether a run that moves by the event into a state of that phase stays paused or stopped. A pause ends with the run.
-- A stop lasts, because it says why steps were not tried, until the run is cancelled or reopened. PostgreSQL inlines
-- it.
create or replace function holdfast.keeps_halt(halt text, event text, phase text)
returns boolean
language sql immutable
begin atomic
  select case when keeps_halt.phase in ('over', 'open_or_over')
              then keeps_halt.halt = 'stopped' and keeps_halt.event <> 'cancelled'
              else keeps_halt.event <> 'reopened' end;
end;
