-- Attributes that the face's functions return since they were first made. They are added in the transaction that
-- installs the functions. Document 003 names whether a step's backoff is over; why a step is not ready is ours.
do $$
begin
  alter type flow.step_readiness add attribute backoff_period_expired boolean, add attribute waiting_reason text;
exception when duplicate_column then
  null;
end
$$;
