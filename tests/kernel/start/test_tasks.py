"""Single tasks: started, claimed, and settled with each outcome there is."""

from __future__ import annotations

from typing import Any

from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Continue, Done, Fail, Outcome, Release, Retry, Snooze
from holdfast.testing import Clock, events, journal
from kernel.steps import DB, claim, claim_one, column, seconds, settle, settlement, start, step_row, value

ERROR = {"type": "Timeout", "message": "no answer"}


def use_policy(db: DB, kind: str, **columns: Any) -> None:
    """Give a kind a policy of its own: three tries, five seconds apart, unless the test says otherwise."""
    law = {"tries": 3, "base": seconds(5), "growth": 1, "longest_retry_after": seconds(60), **columns}
    db.execute(
        """insert into holdfast.policies (policy, tries, base, growth, longest_retry_after)
           values ('own', %(tries)s, %(base)s, %(growth)s, %(longest_retry_after)s)""",
        law,
    )
    db.execute("insert into holdfast.kinds (kind, policy) values (%s, 'own')", [kind])


def test_a_task_goes_from_start_to_done(db: DB) -> None:
    """W-08 W-10 W-31 W-37 W-42 W-60"""
    step_id = start(db)
    step = claim_one(db)

    assert settle(db, step, Done({"sent": 1})) == ["succeeded"]

    assert (step.step_id, step.kind, step.input, step.attempt) == (step_id, "mail", {"to": "a"}, 1)
    assert column(db, step_id, "state") == "done"
    assert column(db, step_id, "result") == {"sent": 1}
    assert events(db, step=step_id) == ["claimed", "succeeded"]
    assert [(e.actor_kind, e.actor, e.attempt, e.lease_id) for e in journal(db, step=step_id)] == [
        ("worker", "a", 1, step.lease_id)
    ] * 2
    assert claim(db) == []


def test_a_claim_writes_state_lease_owner_attempt_and_journal_together(db: DB, clock: Clock) -> None:
    """W-08 W-37 W-40 W-43 W-60"""
    now = clock.freeze()
    step_id = start(db)

    step = claim_one(db, "host:1", lease=seconds(90))

    row = step_row(db, step_id)
    assert (row["state"], row["attempt"], row["due_at"], row["claimed_at"]) == ("running", 1, None, now)
    assert (row["lease_owner"], row["lease_id"], row["lease_until"]) == ("host:1", step.lease_id, now + seconds(90))
    assert step.lease_until == now + seconds(90)
    (entry,) = journal(db, step=step_id)
    assert (entry.at, entry.from_state, entry.event, entry.to_state) == (now, "pending", "claimed", "running")


def test_a_claim_that_is_rolled_back_leaves_no_trace(db: DB) -> None:
    """W-60 X-02"""
    step_id = start(db)

    with db.transaction(force_rollback=True):
        claim_one(db)

    assert (column(db, step_id, "state"), column(db, step_id, "attempt")) == ("pending", 0)
    assert events(db, step=step_id) == []


def test_a_retry_waits_as_its_policy_says_and_counts_the_failure(db: DB, clock: Clock) -> None:
    """X-05 C-65 W-58"""
    use_policy(db, "mail")
    step_id = start(db)
    now = clock.freeze()

    assert settle(db, claim_one(db), Retry(ERROR)) == ["retried"]

    row = step_row(db, step_id)
    assert (row["state"], row["failures"], row["due_at"], row["error"]) == ("pending", 1, now + seconds(5), ERROR)
    assert (row["lease_id"], row["lease_owner"], row["lease_until"], row["finished_at"]) == (None, None, None, None)
    assert journal(db, step=step_id)[-1].error == ERROR
    assert claim(db) == []
    clock.advance(seconds(5))
    assert claim_one(db).attempt == 2


def test_a_retry_with_the_budget_used_up_is_a_failure(db: DB, clock: Clock) -> None:
    """W-32 C-30"""
    use_policy(db, "mail", tries=2, base=seconds(0))
    step_id = start(db)
    settle(db, claim_one(db), Retry(ERROR))

    assert settle(db, claim_one(db), Retry(ERROR)) == ["failed"]

    row = step_row(db, step_id)
    assert (row["state"], row["failures"], row["attempt"], row["error"]) == ("error", 2, 2, ERROR)
    assert row["finished_at"] is not None
    assert value(db, "select array_agg(id) from holdfast.dead_steps") == [step_id]
    clock.advance(seconds(10**6))
    assert claim(db) == []


def test_retry_after_goes_before_the_policy_within_its_bounds(db: DB, clock: Clock) -> None:
    """X-05: what the outside asks for is honoured up to the policy's longest_retry_after, and never before now"""
    use_policy(db, "mail", longest_retry_after=seconds(60))
    now = clock.freeze()

    for asked, waits in ((7, 7), (0, 0), (60, 60), (61, 60), (10**9, 60), (-1, 0), (-(10**6), 0)):
        step_id = start(db)
        assert settle(db, claim_one(db), Retry(ERROR, after=seconds(asked))) == ["retried"]
        assert column(db, step_id, "due_at") == now + seconds(waits)
        run(db, calls.cancel(str(step_id)))


def test_retry_after_does_not_lengthen_the_budget(db: DB) -> None:
    """C-91: a wait that the outside asked for counts as a retry"""
    use_policy(db, "mail", tries=2)
    start(db)
    settle(db, claim_one(db), Retry(ERROR, after=seconds(0)))

    assert settle(db, claim_one(db), Retry(ERROR, after=seconds(0))) == ["failed"]


def test_a_failure_is_final_whatever_budget_is_left(db: DB, clock: Clock) -> None:
    """W-11 W-32 W-58 C-65"""
    step_id = start(db)

    assert settle(db, claim_one(db), Fail(ERROR)) == ["failed"]

    row = step_row(db, step_id)
    assert (row["state"], row["failures"], row["error"], row["lease_id"]) == ("error", 1, ERROR, None)
    assert row["finished_at"] is not None
    clock.advance(seconds(10**6))
    assert claim(db) == []


def test_a_snooze_waits_and_charges_nothing(db: DB, clock: Clock) -> None:
    now = clock.freeze()

    for asked, waits in ((90, 90), (0, 0), (-5, 0)):
        step_id = start(db)
        assert settle(db, claim_one(db), Snooze(seconds(asked))) == ["snoozed"]
        row = step_row(db, step_id)
        assert (row["state"], row["failures"], row["error"]) == ("pending", 0, None)
        assert row["due_at"] == now + seconds(waits)
        run(db, calls.cancel(str(step_id)))


def test_a_release_hands_the_task_back_at_once_and_charges_nothing(db: DB, clock: Clock) -> None:
    """W-62"""
    use_policy(db, "mail")
    step_id = start(db)
    now = clock.freeze()
    settle(db, claim_one(db), Retry(ERROR, after=seconds(0)))

    assert settle(db, claim_one(db), Release()) == ["released"]

    row = step_row(db, step_id)
    assert (row["state"], row["failures"], row["attempt"], row["due_at"]) == ("pending", 1, 2, now)
    assert claim_one(db, "b").step_id == step_id


def test_a_continued_task_goes_on_from_its_cursor(db: DB, clock: Clock) -> None:
    step_id = start(db)
    now = clock.freeze()
    first = claim_one(db)
    assert first.cursor is None

    assert settle(db, first, Continue({"page": 1})) == ["continued"]

    assert (column(db, step_id, "state"), column(db, step_id, "due_at")) == ("pending", now)
    second = claim_one(db)
    assert second.cursor == {"page": 1}
    assert settle(db, second, Continue({"page": 2}, was={"page": 1})) == ["continued"]
    assert claim_one(db).cursor == {"page": 2}


def test_a_cursor_moves_only_from_where_it_was(db: DB) -> None:
    """The compare of compare-and-swap: a refused one writes nothing and leaves the lease as it is"""
    step_id = start(db)
    settle(db, claim_one(db), Continue({"page": 3}))
    step = claim_one(db)
    before = step_row(db, step_id)

    for was in ({"page": 1}, "elsewhere", 0, None):
        assert settle(db, step, Continue({"page": 2}, was=was)) == []

    assert step_row(db, step_id) == before
    assert settle(db, step, Continue({"page": 4}, was={"page": 3})) == ["continued"]


def test_a_cursor_that_was_moved_meanwhile_is_not_overwritten_by_who_saw_none(db: DB) -> None:
    """Who says that there was no cursor is compared too"""
    step_id = start(db)
    step = claim_one(db)
    db.execute("update holdfast.steps set cursor = '9' where id = %s", [step_id])

    assert settle(db, step, Continue(1, was=None)) == []

    assert column(db, step_id, "cursor") == 9


def test_attempts_are_never_reset_and_failures_are_by_progress_and_by_hand(db: DB) -> None:
    """W-37"""
    use_policy(db, "mail", base=seconds(0))
    step_id = start(db)
    seen = []

    for outcome in (Retry(ERROR), Retry(ERROR), Continue(1), Retry(ERROR), Snooze(seconds(0)), Retry(ERROR)):
        settle(db, claim_one(db), outcome)
        seen.append((column(db, step_id, "attempt"), column(db, step_id, "failures")))
    settle(db, claim_one(db), Retry(ERROR))
    run(db, calls.retry(str(step_id)))

    assert seen == [(1, 1), (2, 2), (3, 0), (4, 1), (5, 1), (6, 2)]
    assert (column(db, step_id, "attempt"), column(db, step_id, "failures")) == (7, 0)
    assert claim_one(db).attempt == 8


def test_a_failed_task_is_tried_again_by_hand_and_a_done_one_is_not(db: DB) -> None:
    """W-31 W-32 C-69"""
    step_id = start(db)
    settle(db, claim_one(db), Fail(ERROR))

    assert run(db, calls.retry(str(step_id), "the mail server is back")) == ["pending"]

    entry = journal(db, step=step_id)[-1]
    assert (entry.event, entry.actor_kind, entry.reason) == ("reopened", "user", "the mail server is back")
    assert entry.actor == value(db, "select session_user::text")
    settle(db, claim_one(db), Done())
    assert (column(db, step_id, "state"), column(db, step_id, "error")) == ("done", None)
    assert claim(db) == []


def test_a_batch_settles_each_step_by_its_own_outcome(db: DB, clock: Clock) -> None:
    """One trip for a batch of outcomes, answered with all that was settled"""
    outcomes: list[Outcome] = [Done(1), Fail(ERROR), Snooze(seconds(9)), Done(2), Release(), Continue(1), Retry(ERROR)]
    ids = [start(db) for _ in outcomes]
    steps = claim(db, batch=10)

    settled = run(
        db,
        calls.settle_steps([settlement(s, o) for s, o in zip(steps, outcomes, strict=True)]),
    )

    assert {s.step_id: (s.event, s.state) for s in settled} == dict(
        zip(
            ids,
            [
                ("succeeded", "done"), ("failed", "error"), ("snoozed", "pending"), ("succeeded", "done"),
                ("released", "pending"), ("continued", "pending"), ("retried", "pending"),
            ],
            strict=True,
        )
    )  # fmt: skip
    assert [column(db, i, "result") for i in (ids[0], ids[3])] == [1, 2]


def test_the_json_form_settles_as_the_arrays_do(db: DB) -> None:
    """What bash and people use: holdfast.settle_steps(jsonb)"""
    first, second = start(db), start(db)
    one, two = claim(db, batch=2)

    outcomes = f"""[
      {{"step_id": {one.step_id}, "lease_id": {one.lease_id}, "outcome": "done", "result": {{"n": 1}}}},
      {{"step_id": {two.step_id}, "lease_id": {two.lease_id}, "outcome": "retry", "retry_after": "5 s"}}]"""
    settled = db.execute("select step_id, event, state from holdfast.settle_steps(%s)", [outcomes]).fetchall()

    assert sorted(settled) == [(first, "succeeded", "done"), (second, "retried", "pending")]
    assert column(db, first, "result") == {"n": 1}


def test_each_move_of_a_task_is_journaled_once_in_its_order(db: DB) -> None:
    """W-42 C-69: not only running, done and error but every transition"""
    step_id = start(db)
    for outcome in (Retry(ERROR), Release(), Snooze(seconds(0)), Continue(1), Fail(ERROR)):
        settle(db, claim_one(db), outcome)
    run(db, calls.resolve(str(step_id), "sent by post"))

    moves = [(e.from_state, e.event, e.to_state) for e in journal(db, step=step_id)]

    taken = ("pending", "claimed", "running")
    assert moves == [
        taken, ("running", "retried", "pending"), taken, ("running", "released", "pending"),
        taken, ("running", "snoozed", "pending"), taken, ("running", "continued", "pending"),
        taken, ("running", "failed", "error"), ("error", "resolved", "done"),
    ]  # fmt: skip
