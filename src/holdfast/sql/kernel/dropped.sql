-- Functions whose parameters or results changed, and those that are gone. They are dropped in the transaction that
-- installs what takes their place: a caller finds one or the other.
-- squawk-ignore-file ban-drop-function
drop function if exists holdfast.upkeep(int);
drop function if exists holdfast.mark_asleep(text, text);
drop function if exists holdfast.define_policy(text, int, interval[], interval, numeric, interval, numeric, interval);
drop function if exists holdfast.resolve(text, text);
drop function if exists holdfast.wish(text, text, text);
drop function if exists holdfast.wish_for_step(holdfast.steps, text);
drop function if exists holdfast.move_steps(holdfast.step_move[]);
drop function if exists holdfast.define_policy(text, int, interval[], interval, numeric, interval, numeric,
                                               interval, text, boolean);
drop function if exists holdfast.claim_steps(text, text, text[], int, interval, text[]);
drop function if exists holdfast.greet_worker(text, text, text[], text[], timestamptz);
drop function if exists holdfast.pick_served(text, int, text[], text[], int, timestamptz, holdfast.due_position);
drop function if exists holdfast.pick_steps(text, text, int, text[], text[], int, timestamptz);
drop function if exists holdfast.unpark_served(text, text[], text[]);
drop function if exists holdfast.cancel(text, text);
drop function if exists holdfast.retry(text, text);
drop function if exists holdfast.resolve(text, text, jsonb);
drop function if exists holdfast.wish(text, text, text, jsonb);
drop function if exists holdfast.pause_queue(text, text);
drop function if exists holdfast.resume_queue(text);
drop function if exists holdfast.act(text, text, text);
drop function if exists holdfast.wish(text, text, text, jsonb, text);
drop function if exists holdfast.wish_for_run(holdfast.runs, text);
drop function if exists holdfast.wish_for_step(holdfast.steps, text, jsonb);
drop function if exists holdfast.hold_back(holdfast.step_move[], timestamptz);
drop function if exists holdfast.set_aside(bigint[], text, timestamptz);
drop function if exists holdfast.greet_worker(text, text, text[], text[], text, timestamptz);
drop function if exists holdfast.free_children(bigint[], timestamptz);
drop function if exists holdfast.holder(bigint[], bigint[], jsonb);
drop function if exists holdfast.refuse(text, text, text);
drop function if exists holdfast.pick_steps(text, text, int, text[], text[], text, int, timestamptz);
drop function if exists holdfast.start_step(text, text, jsonb, text, text, text, timestamptz, int, text, text, text,
                                            text);
drop function if exists holdfast.start_task(text, jsonb, text, text, text, timestamptz, int, text);
drop function if exists holdfast.define_kind(text, text, text, interval, interval);
drop function if exists holdfast.claim_steps(text, text, text[], int, interval, text[], text);
drop function if exists holdfast.fill_template(text, jsonb);
drop function if exists holdfast.define_limit(text, int, numeric, interval, numeric, int, interval, text[], text, text);
drop function if exists holdfast.start_step(text, text, jsonb, text, text, text, timestamptz, int, text, text, text,
                                            text, text[], numeric);
drop function if exists holdfast.start_task(text, jsonb, text, text, text, timestamptz, int, text, text[], numeric);
drop function if exists holdfast.start_run(text, text, text, jsonb, jsonb, text, text, uuid);
drop function if exists holdfast.claim_steps(text, text, text[], int, interval, text[], text, int);
drop function if exists holdfast.define_kind(text, text, text, interval, interval, text[], text, numeric);
drop function if exists holdfast.start_step(text, text, jsonb, text, text, text, timestamptz, int, text, text, text,
                                            text, text[], numeric, interval);
drop function if exists holdfast.start_task(text, jsonb, text, text, text, timestamptz, int, text, text[], numeric,
                                            interval);
drop function if exists holdfast.tally_runs(holdfast.run_delta[], timestamptz);
drop function if exists holdfast.count_limits(holdfast.limit_change[], timestamptz);
drop function if exists holdfast.admit_steps(text, int, bigint[], int, bigint[], boolean, int);
drop function if exists holdfast.limits_in_force(text, bigint[]);
drop function if exists holdfast.limit_room(text, int, bigint[], int[], bigint[], numeric[], bigint[], timestamptz);
drop function if exists holdfast.pick_admitted(text, text, int, text[], text[], text, int, timestamptz, int);
drop function if exists holdfast.admit_steps(text, int, bigint[], int, bigint[], boolean, timestamptz, int);
drop function if exists holdfast.parked_queues(bigint);
drop function if exists holdfast.pull_calls(bigint[], text, int, int);
drop function if exists holdfast.pull_parked(text, int, text[], text[], text, int, bigint[], bigint[], timestamptz);
drop function if exists rules.define_channel(text, text, jsonb, int, interval, interval);
drop function if exists holdfast.lock_key(bigint, text, int, int, timestamptz, bigint[]);
drop function if exists holdfast.refuse_pruned(text);
drop function if exists holdfast.lease_last(bigint[], bigint[], text, interval, jsonb, boolean, timestamptz);
drop function if exists holdfast.remember_position(text, holdfast.due_position, timestamptz);
drop function if exists rules.take_preview(jsonb, text, bigint, text, jsonb, text, interval, uuid, text, text, text);
drop function if exists holdfast.add_to_window(uuid, int, int);
drop function if exists holdfast.claim_lot(text, text, text[], text[], text, interval, int, int, int, timestamptz);
drop function if exists holdfast.lease_unadmitted(bigint[], holdfast.steps, text, interval, int, int, timestamptz);
