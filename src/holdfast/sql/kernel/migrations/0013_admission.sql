-- What a claim may take under limits names the states that are to count each step in arrays, which a claim reads faster
-- than an object: `holders` are the admitted steps by their ids, and those of place n are counted by the elements of
-- `held` from `firsts`[n] on. `pair_steps` and `pair_limits` collect them, one pair per step and state.
-- squawk-ignore-file ban-drop-column
alter type holdfast.admission
  drop attribute holds,
  add attribute pair_steps bigint[],
  add attribute pair_limits bigint[],
  add attribute holders bigint[],
  add attribute firsts int[],
  add attribute held bigint[],
  add attribute is_charged_last boolean;
