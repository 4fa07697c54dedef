"""Retention: what is over goes when its rule no longer keeps it, runs go whole, and what is not over stays."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest

from holdfast import errors
from holdfast.kernel import calls, retention_calls
from holdfast.kernel.db import run
from holdfast.models import Fail
from holdfast.testing import Clock
from kernel.retention import days, flow, is_there, keep, left_of, removal, sweep, task
from kernel.schedules import define, fire
from kernel.steps import (
    DB,
    claim_one,
    ids_by_name,
    node,
    settle,
    start,
    start_flow,
    value,
    violations,
    wide_run,
    wish_in_chunks,
)
from properties.guards import login_for

KEPT = {"succeeded": 30, "cancelled": 30, "failed": 90}


@pytest.mark.parametrize("outcome", KEPT)
@pytest.mark.parametrize("make", [task, flow], ids=["task", "run"])
def test_what_is_over_is_kept_as_long_as_its_outcome_says(db: DB, clock: Clock, make: Any, outcome: str) -> None:
    """X-16: succeeded and cancelled for 30 days, failed for 90."""
    clock.freeze()
    subject = make(db, outcome)
    clock.advance(days(KEPT[outcome]) - days(0.001))
    sweep(db)
    assert is_there(db, subject)

    clock.advance(days(0.001))
    swept = sweep(db)

    assert not is_there(db, subject)
    assert (swept.steps, swept.runs) == ((1, 0) if isinstance(subject, int) else (3, 1))


@pytest.mark.parametrize("outcome", KEPT)
def test_a_run_goes_whole_with_everything_that_belongs_to_it(db: DB, clock: Clock, outcome: str) -> None:
    """X-16: also the steps that never ran because others failed."""
    kept, run_id = flow(db), flow(db, outcome)
    steps = list(ids_by_name(db, run_id).values())
    clock.advance(days(91))
    keep(db, None, outcome=outcome, machine="work.task")
    db.execute("update holdfast.runs set finished_at = holdfast.clock() where id = %s", [kept])

    sweep(db)

    assert left_of(db, run_id, steps) == {}
    assert left_of(db, kept, list(ids_by_name(db, kept).values())) == {
        "steps": 3, "run_steps": 3, "edges": 2, "note_keys": 3, "runs": 1,
    }  # fmt: skip


def test_what_is_not_over_stays_however_old_it_is(db: DB, clock: Clock) -> None:
    due, held, waiting = start(db), start(db, "page"), flow_that_waits(db)
    claim_one(db, kinds=["page"])
    clock.advance(days(300))
    keep(db, days(0))

    swept = sweep(db)

    assert (swept.steps, swept.runs) == (0, 0)
    assert all(is_there(db, subject) for subject in (due, held, waiting))
    run(db, calls.rescue_steps())


def flow_that_waits(db: DB) -> UUID:
    """A run whose first step failed but has tries left."""
    return start_flow(db, node("a"), node("b", "a"))


def test_a_run_whose_steps_still_move_stays(db: DB, clock: Clock) -> None:
    run_id = wide_run(db, 6)
    wish_in_chunks(db, run_id, "cancelled", 2)
    clock.advance(days(31))

    assert sweep(db).runs == 0

    run(db, calls.upkeep())
    assert sweep(db).runs == 1


def test_a_run_stays_until_the_run_that_retries_it_is_over(db: DB, clock: Clock) -> None:
    original = flow(db)
    (child,) = run(db, calls.start_run("flow.task", "order", "flow.step", steps=[node("a")], of_run=original))
    clock.advance(days(31))
    assert sweep(db).runs == 0

    run(db, calls.cancel(str(child)))

    assert sweep(db).runs == 1
    assert (is_there(db, original), is_there(db, child)) == (False, True)


def test_a_run_stays_while_the_retry_of_its_retry_is_not_over(db: DB, clock: Clock) -> None:
    original, plan = flow(db), [node("a")]
    (retry,) = run(db, calls.start_run("flow.task", "order", "flow.step", steps=plan, of_run=original))
    run(db, calls.cancel(str(retry)))
    (second,) = run(db, calls.start_run("flow.task", "order", "flow.step", steps=plan, of_run=retry))
    clock.advance(days(31))
    assert sweep(db).runs == 0

    run(db, calls.cancel(str(second)))

    assert sweep(db).runs == 2


def test_a_large_run_goes_at_once_and_its_steps_follow_in_chunks(db: DB, clock: Clock) -> None:
    """Nobody finds half a run: the run's row goes first, and its steps can no longer be acted on."""
    run_id = wide_run(db, 7)
    steps = list(ids_by_name(db, run_id).values())
    for step in claim_all(db):
        settle(db, step, Fail("no"))
    clock.advance(days(91))

    (first,) = run(db, retention_calls.sweep_now(batch=2, afresh=True))

    assert (first.runs, first.steps, first.is_through) == (1, 0, False)
    assert (is_there(db, run_id), violations(db)) == (False, [])
    for subject in (run_id, steps[-1]):
        with pytest.raises(errors.Pruned) as gone:
            run(db, calls.retry(str(subject)))
        assert "failed: 90 days" in gone.value.what
    assert run(db, calls.run_status([run_id])) == []
    assert run(db, calls.step_status(steps)) == run(db, calls.step_results(steps)) == []
    for view in ("holdfast.step_list", "holdfast.dead_steps", "flow.steps"):
        assert value(db, f"select count(*) from {view}") == 0, view

    chunk = first
    sizes = []
    while not chunk.is_through:
        (chunk,) = run(db, retention_calls.sweep_now(batch=2))
        sizes.append(chunk.steps)
        assert violations(db) == []
    assert sizes[:4] == [2, 2, 2, 1]
    assert left_of(db, run_id, steps) == {}


@pytest.mark.parametrize("batch", [1000, 1], ids=["whole", "in chunks"])
def test_the_journal_of_a_runs_steps_is_found_by_the_run_when_it_is_gone(db: DB, clock: Clock, batch: int) -> None:
    """Which step failed, and why; only its name is gone with it."""
    run_id, other = flow(db, "failed"), flow(db, "failed")
    before = {subject: run(db, calls.run_events(subject)) for subject in (run_id, other)}
    clock.advance(days(91))

    swept = sweep(db, batch=batch)

    assert swept.runs == 2
    for subject, events in before.items():
        after = run(db, calls.run_events(subject))
        assert [(each.id, each.event, each.payload) for each in after] == [
            (each.id, each.event, each.payload) for each in events
        ]
        assert [each.step for each in after] == [each.step_id and str(each.step_id) for each in events]


def claim_all(db: DB) -> list[Any]:
    return run(db, calls.claim_steps("a", batch=100))


def test_the_first_sweep_comes_a_day_after_the_migration(db: DB, clock: Clock) -> None:
    """An upgrade removes nothing before somebody could set rules; the row says when it begins."""
    task(db)
    keep(db, days(0))
    (begins_at, migrated_at) = db.execute(
        "select w.begins_at, (select applied_at from holdfast.migrations where name = '0011_retention')"
        "  from holdfast.retention_sweep w"
    ).fetchone()  # type: ignore[misc]
    clock.set(begins_at - days(0.01))

    (early,) = run(db, retention_calls.sweep())
    clock.set(begins_at)
    (due,) = run(db, retention_calls.sweep())

    assert days(1) - days(0.01) < begins_at - migrated_at < days(1) + days(0.01)
    assert (early.steps, early.is_through, early.wait) == (0, True, days(0.01))
    assert due.steps == 1


def test_a_sweep_goes_on_where_the_last_chunk_ended_and_then_rests(db: DB, clock: Clock) -> None:
    tasks = [task(db) for _ in range(5)]
    clock.advance(days(31))

    chunks = [run(db, retention_calls.sweep(batch=2))[0] for _ in range(4)]

    assert [chunk.steps for chunk in chunks] == [2, 2, 1, 0]
    assert [chunk.is_through for chunk in chunks] == [False, False, False, True]
    assert 59 < chunks[-1].wait.total_seconds() <= 3600
    assert not any(is_there(db, each) for each in tasks)
    (resting,) = run(db, retention_calls.sweep())
    assert resting.is_through
    assert 0 < resting.wait.total_seconds() <= 3600


def test_a_later_sweep_goes_to_the_end_as_the_first_did(db: DB, clock: Clock) -> None:
    """In chunks, and past the steps to the runs."""
    for _ in range(3):
        subjects = [task(db), flow(db), task(db), flow(db)]
        clock.advance(days(31))
        chunks = [run(db, retention_calls.sweep(batch=3))[0]]
        while not chunks[-1].is_through:
            chunks += run(db, retention_calls.sweep(batch=3))

        assert not any(is_there(db, each) for each in subjects)
        assert len(chunks) > 2


def test_two_sessions_never_sweep_at_once(dsn: str, db: DB, clock: Clock) -> None:
    task(db)
    clock.advance(days(31))
    with psycopg.connect(dsn, autocommit=True) as other, other.transaction():
        assert run(other, retention_calls.sweep())[0].steps == 1

        (second,) = run(db, retention_calls.sweep())

        assert (second.steps, second.is_through) == (0, None)


def test_a_retry_makes_it_new(db: DB, clock: Clock) -> None:
    step_id = task(db, "failed")
    clock.advance(days(89))
    run(db, calls.retry(str(step_id)))
    settle(db, claim_one(db), Fail("again"))
    clock.advance(days(2))

    assert sweep(db).steps == 0


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        ([], 30),
        ([{"days": 1}], 1),
        ([{"queue": "bulk", "days": 1}], 1),
        ([{"outcome": "succeeded", "days": 2}], 2),
        ([{"machine": "work.task", "days": 3}, {"queue": "bulk", "outcome": "succeeded", "days": 1}], 3),
        ([{"machine": "work.task", "days": 3}, {"machine": "work.task", "queue": "bulk", "days": 4}], 4),
        ([{"tenant": "acme", "days": 5}, {"machine": "work.task", "queue": "bulk", "days": 4}], 5),
        ([{"tenant": "other", "days": 5}, {"machine": "flow.task", "days": 6}, {"outcome": "failed", "days": 7}], 30),
        ([{"machine": "work.task", "days": 0}], 0),
        ([{"machine": "work.task", "days": None}], None),
    ],
)  # fmt: skip
def test_the_most_specific_rule_applies(db: DB, clock: Clock, rules: list[dict[str, Any]], kept: int | None) -> None:
    """The tenant counts most, then the machine, the queue and the outcome."""
    clock.freeze()
    for rule in rules:
        span, where = rule["days"], {name: given for name, given in rule.items() if name != "days"}
        keep(db, None if span is None else days(span), **where)
    subject = task(db, queue="bulk", tenant="acme")
    for age in range(0, 40, 1):
        sweep(db)
        assert is_there(db, subject) == (kept is None or age < kept), age
        clock.advance(days(1))


def test_a_rule_is_changed_by_somebody(db: DB, clock: Clock) -> None:
    """X-16: each change leaves a row with its actor, and setting the same again leaves none."""
    clock.freeze()
    for _ in range(2):
        keep(db, days(7), queue="bulk", reason="it is much", actor="ann")
    keep(db, None, queue="bulk", actor="bob")
    run(db, retention_calls.forget_retention(queue="bulk", actor="eve"))

    rows = db.execute(
        "select event, tenant, queue, keep, kept, actor, login is not null, reason"
        "  from holdfast.retention_changes order by id"
    ).fetchall()

    assert rows == [
        ("set", "*", "bulk", days(7), None, "ann", True, "it is much"),
        ("set", "*", "bulk", None, days(7), "bob", True, None),
        ("removed", "*", "bulk", None, None, "eve", True, None),
    ]
    for change in ("update holdfast.retention_changes set actor = 'x'", "delete from holdfast.retention_changes",
                   "truncate holdfast.retention_changes"):  # fmt: skip
        with pytest.raises(psycopg.Error, match="append-only"):
            db.execute(change)


BAD_RULES: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"keep": days(-1)}, errors.BadInput, "keep"),
    ({"keep": "1 month -29 days"}, errors.BadInput, "keep"),
    ({"keep": "2000 years"}, errors.BadInput, "keep"),
    ({"keep": days(1), "outcome": "lost"}, errors.BadInput, "outcome"),
    ({"keep": days(1), "machine": "no.such"}, errors.NotFound, "machine"),
    ({"keep": days(1), "machine": "flow.task", "queue": "bulk"}, errors.BadInput, "queue"),
    ({"keep": days(1), "queue": "a\nb"}, errors.BadInput, "queue"),
    ({"keep": days(1), "what": "everything"}, errors.BadInput, "what"),
    ({"keep": days(20), "what": "journal"}, errors.BadInput, "keep"),
    ({"keep": days(90), "what": "journal", "queue": "bulk"}, errors.BadInput, "what"),
    ({"keep": days(90), "what": "journal", "tenant": "acme"}, errors.BadInput, "tenant"),
]


@pytest.mark.parametrize(("rule", "error", "where"), BAD_RULES)
def test_a_rule_that_cannot_be_one_is_refused(
    db: DB, rule: dict[str, Any], error: type[errors.RefusedError], where: str
) -> None:
    """With what to do next, and nothing is changed."""
    with pytest.raises(error) as refused:
        run(db, retention_calls.set_retention(**rule))

    assert (refused.value.where, bool(refused.value.next)) == (where, True)
    assert value(db, "select count(*) from holdfast.retention_changes") == 0


def test_a_default_applies_again_when_the_rule_that_replaced_it_is_removed(db: DB) -> None:
    def rules() -> list[str]:
        return [rule for (rule,) in db.execute("select rule from holdfast.retention_list where is_default order by 1")]

    before = rules()
    keep(db, days(1), outcome="failed")
    keep(db, "1 year", what="journal")
    less = rules()
    gone = [run(db, retention_calls.forget_retention(outcome="failed"))[0] for _ in range(2)]
    run(db, retention_calls.forget_retention(what="journal"))

    kept = {f"machine rules.{machine}: 90 days" for machine in ("run", "reconcile")}
    assert set(before) - set(less) == {"failed: 90 days", "journal: 6 months"} | kept
    assert (gone, rules()) == ([True, False], before)


@pytest.mark.parametrize("batch", [0, -1, 10_001])
def test_a_chunk_has_a_size(db: DB, batch: int) -> None:
    with pytest.raises(errors.BadInput) as refused:
        run(db, retention_calls.sweep(batch=batch))

    assert str(batch) in refused.value.what


def test_a_dry_run_counts_just_what_a_sweep_removes(db: DB, clock: Clock) -> None:
    """X-16: by rule, and it removes nothing; it says where it has not looked at all."""
    for outcome in ("succeeded", "succeeded", "cancelled"):
        task(db, outcome)
    flow(db)
    start(db, key="short", key_for=days(1))
    clock.advance(days(31))
    task(db)

    counted = run(db, retention_calls.prunable())
    few = run(db, retention_calls.prunable(most=1))

    assert [(c.what, c.rule, c.rows, c.steps, c.is_all) for c in counted] == [
        ("tasks", "cancelled: 30 days", 1, 1, True),
        ("tasks", "succeeded: 30 days", 2, 2, True),
        ("runs", "succeeded: 30 days", 1, 3, True),
        ("keys", "key_for", 1, None, True),
    ]
    assert [(c.what, c.rows, c.is_all) for c in few] == [("tasks", 1, False), ("runs", 1, False), ("keys", 1, False)]
    swept = sweep(db)
    assert (swept.steps, swept.runs, swept.keys) == (3 + 3, 1, 1)
    assert run(db, retention_calls.prunable()) == []


def test_a_dry_run_counts_ticks_as_a_sweep_removes_them(db: DB, clock: Clock) -> None:
    """The ticks that the next one needs stay. Another tenant's are not counted."""
    clock.freeze()
    define(db, every=days(1), overlap="skip")
    for _ in range(3):
        clock.advance(days(1))
        fire(db)
    db.execute("""insert into holdfast.ticks (tenant, name, at, due_at, fired_at, cause, outcome, face, ids, actor)
                  select t, 'gone', c, c, c, 'clock', 'skipped', 'work', '{}', 'scheduler'
                    from holdfast.clock() c, unnest(array['a', 'b']) t""")
    clock.advance(days(31))

    (counted,) = run(db, retention_calls.prunable())
    (few,) = run(db, retention_calls.prunable(most=3))
    with login_for(db, "hf_operator", "a") as operator:
        (own,) = run(operator, retention_calls.prunable())

    assert (counted.what, counted.rule, counted.is_all) == ("ticks", "ticks: 30 days", True)
    assert (few.is_all, own.rows) == (False, 1)
    assert sweep(db).ticks == counted.rows > 2
    assert run(db, retention_calls.prunable()) == []


def test_a_run_for_one_that_was_pruned_is_refused_by_its_rule(db: DB, clock: Clock) -> None:
    run_id = flow(db)
    clock.advance(days(31))
    sweep(db)

    for subject, error in ((run_id, errors.Pruned), (UUID(int=7), errors.NotFound)):
        with pytest.raises(error) as refused:
            run(db, calls.start_run("flow.task", "order", "flow.step", steps=[node("a")], of_run=subject))
        assert (refused.value.where, bool(refused.value.next)) == (str(subject), True)


def test_it_is_known_what_was_removed_when_and_by_which_rule(db: DB, clock: Clock) -> None:
    """While the journal has it. What never existed is not known."""
    clock.freeze()
    step_id, run_id = task(db), flow(db, "failed")
    ended_at = clock.now()
    (step_of_run, *_) = ids_by_name(db, run_id).values()
    alive = start(db)
    clock.advance(days(95))
    sweep(db)

    found = [removal(db, each) for each in (step_id, run_id, step_of_run)]

    assert [(f.label, f.outcome, f.finished_at, f.pruned_at, f.rule) for f in found if f] == [
        ("task", "succeeded", ended_at, clock.now(), "succeeded: 30 days"),
        ("run", "failed", ended_at, clock.now(), "failed: 90 days"),
        ("step", "failed", ended_at, clock.now(), "failed: 90 days"),
    ]
    assert [removal(db, each) for each in (alive, 10**9, UUID(int=7))] == [None] * 3
    assert run(db, retention_calls.pruned("nonsense")) == []


def test_what_somebody_deleted_was_not_pruned(db: DB) -> None:
    step_id = task(db)
    db.execute("delete from holdfast.steps where id = %s", [step_id])

    found = removal(db, step_id)

    assert found is not None
    assert (found.outcome, found.pruned_at, found.rule) == ("succeeded", None, None)
