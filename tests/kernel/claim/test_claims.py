"""What a claim takes: in which order, from which queue, of which kinds, and how many."""

from __future__ import annotations

import pytest

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Release, Snooze
from holdfast.testing import Clock
from kernel.steps import DB, LEASE, claim, claim_one, clock_of, column, finish, repeated, seconds, settle, start, value


def claimed_in_order(db: DB, batch: int = 1) -> list[int]:
    """Claim until nothing is left; the ids as they came."""
    return [s.step_id for s in repeated(lambda: claim(db, batch=batch))]


def test_an_empty_queue_gives_nothing(db: DB) -> None:
    """W-18"""
    assert claim(db) == []
    assert claim(db, queue="never heard of", batch=500) == []


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_the_oldest_task_goes_first(db: DB, batch: int) -> None:
    """W-59"""
    ids = [start(db) for _ in range(6)]

    assert claimed_in_order(db, batch) == ids


def test_the_due_time_goes_before_the_order_of_creation(db: DB, clock: Clock) -> None:
    """W-59 C-86"""
    now = clock.freeze()
    third, first, second = (start(db, due_at=now - seconds(age)) for age in (1, 30, 20))

    assert claimed_in_order(db) == [first, second, third]


def test_a_batch_takes_those_that_are_due_longest(db: DB, clock: Clock) -> None:
    """W-59 C-86: which ones is by due time; a batch itself has no order"""
    now = clock.freeze()
    ids = [start(db, due_at=now - seconds(age)) for age in (1, 30, 20, 40)]

    assert {s.step_id for s in claim(db, batch=2)} == {ids[3], ids[1]}


def test_tasks_that_are_due_at_one_moment_go_by_their_ids(db: DB, clock: Clock) -> None:
    """W-59 C-86"""
    now = clock.freeze()
    ids = [start(db, due_at=now) for _ in range(20)]

    assert claimed_in_order(db, batch=3) == ids


def test_a_higher_priority_goes_before_any_due_time(db: DB, clock: Clock) -> None:
    now = clock.freeze()
    low = start(db, due_at=now - seconds(1000))
    top = start(db, priority=9)
    middle = [start(db, priority=5, due_at=now - seconds(age)) for age in (5, 7)]

    assert claimed_in_order(db) == [top, *reversed(middle), low]


def test_one_batch_takes_from_several_priorities_and_no_more_than_it_asked_for(db: DB) -> None:
    low, middle, top = ([start(db, priority=p) for _ in range(3)] for p in (0, 4, 9))

    assert {s.step_id for s in claim(db, batch=7)} == {*top, *middle, low[0]}


def test_a_task_is_not_claimed_before_it_is_due(db: DB, clock: Clock) -> None:
    """W-59 X-04"""
    now = clock.freeze()
    later = start(db, due_at=now + seconds(60))
    assert claim(db) == []

    clock.advance(seconds(59))
    assert claim(db) == []
    clock.advance(seconds(1))
    assert claim_one(db).step_id == later


def test_moving_the_due_time_by_sql_is_followed(db: DB, clock: Clock) -> None:
    """X-04: due times are columns a tester can move"""
    later = start(db, due_at=clock.freeze() + seconds(10**6))

    db.execute("update holdfast.steps set due_at = holdfast.clock() where id = %s", [later])

    assert claim_one(db).step_id == later


def test_a_snoozed_task_lets_others_pass(db: DB, clock: Clock) -> None:
    first, second = start(db), start(db)
    settle(db, claim_one(db), Snooze(seconds(30)))

    assert claim_one(db).step_id == second
    assert claim(db) == []
    clock.advance(seconds(30))
    assert claim_one(db).step_id == first


def test_queues_do_not_see_each_other(db: DB) -> None:
    mine, other = start(db, queue="mine"), start(db, queue="other")

    assert [s.step_id for s in claim(db, queue="mine", batch=10)] == [mine]
    assert [s.step_id for s in claim(db, queue="other", batch=10)] == [other]
    assert claim(db, queue="default", batch=10) == []


def test_a_paused_queue_gives_nothing_until_it_is_resumed(db: DB) -> None:
    held = start(db)
    step = claim_one(db)
    waiting = start(db)

    run(db, calls.pause_queue("default", "the shop is closed"))

    assert claim(db) == []
    assert finish(db, [step]) == [held]
    row = db.execute("select paused_by, pause_reason, due from holdfast.queue_list").fetchall()
    assert row == [(value(db, "select session_user::text"), "the shop is closed", 1)]
    run(db, calls.resume_queue("default"))
    assert claim_one(db).step_id == waiting


def test_a_pause_takes_what_is_started_meanwhile_and_only_its_queue(db: DB) -> None:
    start(db, queue="other")
    start(db)
    run(db, calls.pause_queue("default"))

    start(db, priority=9)

    assert claim(db, batch=10) == []
    assert len(claim(db, queue="other")) == 1


@pytest.mark.parametrize("act", [calls.pause_queue, calls.resume_queue])
def test_a_queue_that_nobody_used_cannot_be_paused_or_resumed(db: DB, act: type) -> None:
    with pytest.raises(errors.NotFound, match="nowhere"):
        run(db, act("nowhere"))


def test_a_worker_takes_only_the_kinds_it_serves(db: DB) -> None:
    """W-05"""
    mail, print_, sms = start(db, "mail"), start(db, "print"), start(db, "sms")

    assert [s.step_id for s in claim(db, "a", kinds=["sms", "mail"], batch=10)] == [mail, sms]
    assert [s.step_id for s in claim(db, "b", kinds=["print"], batch=10)] == [print_]


def test_a_worker_that_serves_no_kind_takes_nothing(db: DB) -> None:
    """W-05"""
    step_id = start(db)

    assert claim(db, kinds=[]) == []
    assert claim_one(db, "b").step_id == step_id


@pytest.mark.parametrize("kinds", [None, ["mail"]], ids=["any kind", "its kind"])
def test_a_claim_gives_no_more_than_its_batch(db: DB, kinds: list[str] | None) -> None:
    """R21"""
    for _ in range(7):
        start(db)

    assert [len(claim(db, kinds=kinds, batch=3)) for _ in range(4)] == [3, 3, 1, 0]


def test_a_claim_passes_over_what_another_claims_at_the_same_time(db: DB, dsn: str) -> None:
    """W-22 W-39: two workers racing; the loser takes the next without waiting"""
    first, second = start(db), start(db)

    with db.transaction():
        mine = claim_one(db, "a")
        with type(db).connect(dsn, autocommit=True) as other:
            other.execute("set lock_timeout = '5s'")
            its = claim_one(other, "b")
            assert claim(other, "b") == []

    assert (mine.step_id, its.step_id) == (first, second)


def test_the_lease_is_what_the_claim_asks_for_else_the_kinds_else_300_seconds(db: DB, clock: Clock) -> None:
    """W-46 C-70"""
    db.execute("insert into holdfast.kinds (kind, lease) values ('slow', '1 hour'), ('plain', null)")
    now = clock.freeze()
    for kind in ("slow", "plain", "unknown"):
        start(db, kind)

    untold = [s.lease_until - now for s in claim(db, lease=None, batch=3)]
    for kind in ("slow", "plain"):
        start(db, kind)
    told = [s.lease_until - now for s in claim(db, lease=LEASE, batch=3)]

    assert untold == [seconds(3600), seconds(300), seconds(300)]
    assert told == [LEASE, LEASE]


def test_a_claim_keeps_the_workers_row(db: DB, clock: Clock) -> None:
    now = clock.freeze()
    claim(db, "host:1", kinds=["mail"])
    clock.advance(seconds(11))
    claim(db, "host:1", kinds=["mail", "sms"])

    row = db.execute("select worker, queue, kinds, is_asleep, started_at, seen_at from holdfast.workers").fetchall()

    assert row == [("host:1", "default", ["mail", "sms"], False, now, now + seconds(11))]


def test_a_released_task_is_behind_those_that_were_due_before(db: DB, clock: Clock) -> None:
    """W-59: handed back, it is due from now"""
    clock.freeze()
    first = start(db)
    clock.advance(seconds(1))
    second = start(db)
    clock.advance(seconds(1))
    settle(db, claim_one(db, "a"), Release())

    assert [claim_one(db, w).step_id for w in ("b", "c")] == [second, first]


def test_a_claim_brings_all_that_a_handler_needs(db: DB) -> None:
    """W-09 W-50: one trip"""
    given = {"text": "grüß 🙂", "n": 1.5, "deep": [{"a": None}]}
    step_id = start(db, "mail", given, queue="q", tenant="t")

    step = claim_one(db, queue="q")

    assert (step.step_id, step.run_id, step.kind, step.input, step.cursor) == (step_id, None, "mail", given, None)
    assert step.lease_until > clock_of(db)
    assert column(db, step_id, "tenant") == "t"
