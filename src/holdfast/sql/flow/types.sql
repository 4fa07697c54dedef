-- Attributes that were added to the results of the face's functions. They are added in the transaction that installs
-- the functions. Document 003 asks whether a step's backoff is over; the reason why a step is not ready is our own.
do $$
begin
  alter type flow.step_readiness add attribute backoff_period_expired boolean, add attribute waiting_reason text;
exception when duplicate_column then
  null;
end
$$;
