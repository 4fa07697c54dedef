"""Short stories that each hold one property: they pass on the real engine and fail on one that lacks a guard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
from psycopg import Connection

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import ClaimedStep, Continue, Done, Fail, Outcome, Release, Retry, Settlement
from holdfast.testing import Clock

DB = Connection[Any]
LEASE = timedelta(seconds=30)


def start(db: DB, kind: str = "mail", **options: Any) -> int:
    return run(db, calls.start_task(kind, options.pop("content", {}), **options))[0]


def start_flow(db: DB, **after: str) -> UUID:
    """Start a workflow: each step by its name, with the names of those it waits for."""
    plan = [{"name": name, "kind": "mail", "after": parents.split()} for name, parents in after.items()]
    return run(db, calls.start_run("flow.task", "story", "flow.step", steps=plan))[0]


def claim(db: DB, worker: str = "a", **options: Any) -> list[ClaimedStep]:
    return run(db, calls.claim_steps(worker, lease=LEASE, **options))


def claim_one(db: DB) -> ClaimedStep:
    steps = claim(db)
    assert len(steps) == 1, "nothing to claim"
    return steps[0]


def settle(db: DB, step: ClaimedStep, outcome: Outcome) -> list[str]:
    return [s.event for s in run(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, outcome)]))]


def value(db: DB, query: str, *arguments: Any) -> Any:
    row = db.execute(query, arguments).fetchone()
    assert row is not None
    return row[0]


def step_is(db: DB, step_id: int, **columns: Any) -> None:
    for name, wanted in columns.items():
        assert value(db, f"select {name} from holdfast.steps where id = %s", step_id) == wanted, name


def sound(db: DB) -> None:
    broken = run(db, calls.violations())
    assert not broken, broken


@contextmanager
def refused(*kinds: type[Exception]) -> Iterator[None]:
    """The block must be refused in this way; that it goes through breaks the property."""
    try:
        yield
    except kinds:
        return
    raise AssertionError(f"went through, where {kinds} was due")


def changed(db: DB, statement: str, *arguments: Any) -> None:
    """Change rows by plain SQL, with the kernel's own errors."""
    try:
        db.execute(statement, arguments)
    except psycopg.Error as error:
        leaf = errors.BY_SQLSTATE.get(error.sqlstate or "")
        raise (leaf(str(error)) if leaf else error) from error


def lost_lease(db: DB) -> tuple[ClaimedStep, ClaimedStep]:
    """Let `a` fall silent past its lease and `b` take the step: what each of them holds, or held."""
    start(db)
    (old,) = claim(db, "a")
    Clock(db).advance(LEASE + timedelta(seconds=1))
    run(db, calls.rescue_steps())
    (new,) = claim(db, "b")
    return old, new


# Leases.


def who_lost_its_lease_settles_nothing(db: DB) -> None:
    for outcome in (Done(), Fail(), Retry(), Release()):
        old, new = lost_lease(db)
        assert settle(db, old, outcome) == []
        step_is(db, new.step_id, state="running", lease_id=new.lease_id, lease_owner="b")
        assert settle(db, new, Done()) == ["succeeded"]
    sound(db)


def who_lost_its_lease_renews_nothing(db: DB) -> None:
    old, new = lost_lease(db)
    for worker, lease_id in (("a", old.lease_id), ("b", old.lease_id), ("a", new.lease_id)):
        call = calls.renew_leases(worker, [lease_id], step_ids=[new.step_id])
        assert run(db, call) == []
    step_is(db, new.step_id, lease_until=new.lease_until)


def who_lost_its_lease_has_no_time_left(db: DB) -> None:
    old, new = lost_lease(db)
    steps, second = [old.step_id, new.step_id], timedelta(seconds=1)
    assert run(db, calls.leases_left(steps, [old.lease_id, new.lease_id], second)) == [new.lease_id]


def a_lease_that_runs_out_soon_does_not_last(db: DB) -> None:
    old, new = lost_lease(db)
    assert run(db, calls.leases_left([old.step_id], [new.lease_id], timedelta(days=1))) == []


def who_lost_its_lease_writes_no_note(db: DB) -> None:
    old, new = lost_lease(db)
    with refused(errors.LeaseLost):
        run(db, calls.note(old.step_id, old.lease_id, "info", "still here"))
    assert run(db, calls.note(new.step_id, new.lease_id, "info", "mine"))
    assert value(db, "select count(*) from holdfast.notes") == 1


def lease_numbers_only_grow(db: DB) -> None:
    start(db)
    start(db)
    numbers: list[int] = []
    for _ in range(4):
        for step in claim(db, batch=2):
            numbers.append(step.lease_id)
            settle(db, step, Release())
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 8


def a_lease_is_kept_until_it_runs_out(db: DB) -> None:
    start(db)
    step = claim_one(db)
    assert run(db, calls.rescue_steps()) == []
    step_is(db, step.step_id, lease_id=step.lease_id)


def a_lease_counts_from_the_claim_and_not_from_its_transaction(db: DB) -> None:
    start(db)
    with db.transaction():
        later = Clock(db).now()
        step = claim_one(db)
    assert step.lease_until >= later + LEASE


# Claims.


def a_claim_passes_over_what_another_has(db: DB) -> None:
    first, second = start(db), start(db)
    with psycopg.connect(db.info.dsn) as other:
        other.execute("select from holdfast.steps where id = %s for update", [first])
        with db.transaction():
            db.execute("set local lock_timeout = '100 ms'")  # who waits for the other has lost already
            assert [c.step_id for c in claim(db, batch=2)] == [second]


def a_claim_takes_only_what_is_due(db: DB) -> None:
    now = start(db)
    start(db, due_at=Clock(db).now() + timedelta(hours=1))
    assert [c.step_id for c in claim(db, batch=5)] == [now]


def a_claim_takes_the_higher_priority_first(db: DB) -> None:
    start(db)
    high = start(db, priority=9)
    assert [c.step_id for c in claim(db)] == [high]


def a_paused_queue_gives_nothing(db: DB) -> None:
    start(db)
    run(db, calls.pause_queue("default"))
    assert claim(db) == []


def a_step_of_a_cancelled_run_is_not_claimed(db: DB) -> None:
    run_id = start_flow(db, a="", b="")
    changed(db, "update holdfast.runs set state = 'cancelled', finished_at = holdfast.clock() where id = %s", run_id)
    assert claim(db, batch=5) == []


# Budgets, cursors and keys.


def a_retry_ends_with_its_budget(db: DB) -> None:
    step_id = start(db)
    assert [settle(db, claim_one(db), Retry()) for _ in range(3)] == [["retried"], ["retried"], ["failed"]]
    step_is(db, step_id, state="error", failures=3)


def a_step_that_kills_its_workers_ends_with_its_budget(db: DB) -> None:
    step_id = start(db)
    for _ in range(3):
        claim(db)
        Clock(db).advance(LEASE + timedelta(seconds=1))
        run(db, calls.rescue_steps())
    step_is(db, step_id, state="error", failures=3)


def a_retry_waits_by_the_ordinal_that_it_names(db: DB) -> None:
    Clock(db).freeze()
    Clock(db).fix_chance(0.5)
    step_id = start(db)
    settle(db, claim_one(db), Retry("429", policy="rules.429", ordinal=2))
    waits = value(db, "select due_at - holdfast.clock() from holdfast.steps where id = %s", step_id)
    assert waits == timedelta(seconds=32)


def a_retry_by_hand_has_a_fresh_budget(db: DB) -> None:
    step_id = start(db)
    settle(db, claim_one(db), Retry())
    settle(db, claim_one(db), Fail())
    run(db, calls.retry(str(step_id)))
    step_is(db, step_id, state="pending", failures=0, attempt=2)


def a_cursor_moves_only_from_where_it_was(db: DB) -> None:
    step_id = start(db)
    assert settle(db, claim_one(db), Continue({"page": 1})) == ["continued"]
    step = claim_one(db)
    assert settle(db, step, Continue({"page": 3}, was={"page": 2})) == []
    step_is(db, step_id, cursor={"page": 1}, lease_id=step.lease_id)


def a_key_is_for_one_input(db: DB) -> None:
    first = start(db, key="k", content={"n": 1})
    assert start(db, key="k", content={"n": 1}) == first
    with refused(errors.KeyConflict):
        start(db, key="k", content={"n": 2})


def a_unique_key_stands_once_among_the_open(db: DB) -> None:
    insert = """insert into holdfast.steps (machine, state, kind, unique_key, due_at, created_at)
                values ('work.task', 'pending', 'mail', 'u', holdfast.clock(), holdfast.clock())"""
    db.execute(insert)
    with refused(psycopg.errors.UniqueViolation):
        db.execute(insert)
    settle(db, claim_one(db), Done())
    assert start(db, unique_key="u")


# Runs.


def a_join_comes_once_after_all_its_parents(db: DB) -> None:
    run_id = start_flow(db, a="", b="", join="a b")
    join = value(db, "select max(id) from holdfast.steps")
    first, second = claim(db, batch=2)
    step_is(db, join, waits=2, due_at=None)
    settle(db, first, Done())
    step_is(db, join, waits=1, due_at=None)
    sound(db)
    settle(db, second, Done())
    sound(db)
    assert [c.step_id for c in claim(db, batch=5)] == [join]
    assert value(db, "select state from holdfast.runs where id = %s", run_id) == "in_progress"


def a_run_closes_with_its_last_step(db: DB) -> None:
    run_id = start_flow(db, a="", b="a")
    for left in ("in_progress", "complete"):
        settle(db, claim_one(db), Done())
        sound(db)
        assert value(db, "select state from holdfast.runs where id = %s", run_id) == left


def steps_do_not_wait_for_each_other(db: DB) -> None:
    with refused(errors.CycleFound):
        start_flow(db, a="c", b="a", c="b")
