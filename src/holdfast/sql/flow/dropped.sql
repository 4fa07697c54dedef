-- See kernel/dropped.sql.
-- squawk-ignore-file ban-drop-function
drop function if exists flow.policy_with_tries(text, int);
drop function if exists flow.adjusted_tries(int, int, boolean);
drop function if exists flow.safe_transition_to(bigint, text, text);
drop function if exists flow.safe_transition_to(anycompatible, text, text);
drop function if exists flow.adjusted_tries(int, int);
drop function if exists flow.check_adjustment(holdfast.steps, boolean, numeric);
drop function if exists flow.policy_with_tries(text, int, boolean);
drop function if exists flow.initialize_task(text, jsonb, jsonb, text, text, text, text, text[], jsonb);
drop function if exists flow.start_task(text, jsonb, text, text, text, text, text[], jsonb);
