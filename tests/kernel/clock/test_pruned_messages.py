"""What messages say about retention is true: each is read after something was pruned."""

from __future__ import annotations

import psycopg
import pytest

from holdfast import Holdfast, errors
from holdfast.kernel import calls, retention_calls
from holdfast.kernel.db import run, translate
from holdfast.testing import Clock
from kernel.retention import days, flow, is_there, keep, sweep, task
from kernel.steps import DB, value
from ops import runs as ops

RULES = "select rule from holdfast.retention_list"


def refused(db: DB, statement: str) -> errors.HoldfastError:
    with pytest.raises(psycopg.Error) as raised:
        db.execute(statement)
    error = translate(raised.value)
    assert error is not None
    return error


def deployment(db: DB, outcome: str = "success") -> int:
    """Queue a run of ops, and end it that way; the number of its step."""
    run_id = ops.queue(db)
    ops.claim(db)
    ops.finish(db, run_id, outcome)
    step_id: int = value(db, "select * from ops.step_of_run(%s)", run_id)
    return step_id


@pytest.mark.parametrize(
    ("view", "make"),
    [("work.tasks", task), ("flow.tasks", flow), ("ops.runs", deployment)],
    ids=["work", "flow", "ops"],
)
def test_who_may_not_delete_a_task_is_told_what_does(db: DB, clock: Clock, view: str, make: object) -> None:
    """X-16: retention removes finished tasks by the rules of the list that the message names."""
    subject, other = make(db), make(db, "failed")  # type: ignore[operator]
    assert ("succeeded: 30 days",) in db.execute(RULES).fetchall()
    clock.advance(days(31))
    sweep(db)

    assert (is_there(db, subject), is_there(db, other)) == (False, True)
    assert value(db, f"select count(*) from {view}") == 1
    error = refused(db, f"delete from {view}")
    assert "holdfast.retention_list" in (error.next or "")
    assert "holdfast retention run" in (error.next or "")


@pytest.mark.own_database
@pytest.mark.parametrize(("span", "said"), [("6 months", "journal: 6 months"), ("2 years", "journal: 2 years")])
def test_who_may_not_change_the_journal_is_told_when_it_is_dropped(db: DB, clock: Clock, span: str, said: str) -> None:
    """X-16: it names the rule, and that rule drops the month."""
    keep(db, span, what="journal")
    task(db)
    error = refused(db, "delete from holdfast.journal")
    assert said in (error.next or "")

    begins = value(db, "select holdfast.clock() + %s::interval + interval '1 month'", span)
    clock.set(begins)
    (month,) = run(db, retention_calls.drop_month())

    assert month is not None
    assert month.startswith("journal_")
    assert value(db, "select count(*) from holdfast.journal") == 0
    run(db, calls.upkeep())


def test_a_pause_stays_and_the_message_does_not_promise_otherwise(db: DB) -> None:
    task(db)
    run(db, calls.pause_queue("default"))

    error = refused(db, "delete from holdfast.queue_pauses")

    assert "does not remove" in (error.next or "")


@pytest.mark.parametrize("make", [task, flow], ids=["task", "run"])
@pytest.mark.parametrize("method", ["status", "result", "retry", "cancel", "resolve"])
def test_a_handle_of_something_pruned_says_so(dsn: str, db: DB, clock: Clock, make: object, method: str) -> None:
    """X-16: with when it ended, how, and which rule removed it; what never was is not found."""
    clock.freeze()
    subject = make(db, "failed")  # type: ignore[operator]
    ended_at = clock.now()
    clock.advance(days(91))
    sweep(db)
    app = Holdfast(dsn)
    never = app.handle(10**12) if isinstance(subject, int) else app.handle("018f0000-0000-7000-8000-000000000000")

    with pytest.raises(errors.Pruned) as gone:
        getattr(app.handle(subject), method)()
    with pytest.raises(errors.NotFound):
        getattr(never, method)()

    error = gone.value
    assert (error.where, "failed: 90 days" in error.what, "runs show" in (error.next or "")) == (
        str(subject),
        True,
        True,
    )
    if method in {"status", "result"}:
        assert (error.outcome, error.finished_at, error.pruned_at, error.rule) == (
            "failed", ended_at, clock.now(), "failed: 90 days",
        )  # fmt: skip
    assert [event.event for event in app.handle(subject).events()][-1] in {"failed", "blocked"}
    app.close()


def test_the_other_methods_of_a_flows_run_say_so_too(dsn: str, db: DB, clock: Clock) -> None:
    run_id = flow(db)
    clock.advance(days(31))
    sweep(db)
    app = Holdfast(dsn)
    handle = app.handle(run_id)

    for read in (handle.steps, handle.context, lambda: handle.result_of("a"), lambda: handle.retry_from("a")):
        with pytest.raises(errors.Pruned):
            read()
    app.close()
