-- Leaves room in the steps' primary key for the entries of a step's claim and settle, which land beside the first one: a full
-- page made each of them search for dead entries or split it.
alter index holdfast.steps_pkey set (fillfactor = 50);
