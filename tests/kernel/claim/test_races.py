"""What happens at the same moment: many workers, one task; many starters, one key; a sweep and a completion."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from uuid import UUID

import psycopg
import pytest

from holdfast import errors
from holdfast.models import ClaimedStep, Continue, Done, Fail, Outcome, Release, Retry, Snooze
from holdfast.testing import Clock, events
from kernel.steps import (
    DB,
    LEASE,
    PATIENCE,
    T,
    at_once,
    claim,
    claim_one,
    column,
    finish,
    node,
    rescue,
    seconds,
    settle,
    start,
    start_flow,
    until_blocked,
    value,
)
from scenarios.proof import Proof

ROUNDS = 300


def staged(db: DB, amount: int) -> None:
    """Start many tasks by one statement."""
    with db.transaction():
        db.execute("select holdfast.stage_steps()")
        db.execute(
            "insert into pg_temp.staged_steps (kind, input) select 'mail', to_jsonb(n) from generate_series(1, %s) n",
            [amount],
        )
        db.execute("select holdfast.take_staged()")


def in_step(gate: threading.Barrier, act: Callable[[], T]) -> T:
    """Act at the moment when the other side does, and wait until it has."""
    gate.wait(PATIENCE)
    answer = act()
    gate.wait(PATIENCE)
    return answer


def shut_gate(db: DB, event: str) -> None:
    """Let who inserts or updates steps wait right after it, until the gate is opened: pg_advisory_unlock(1)."""
    db.execute(
        """create function public.wait_at_gate() returns trigger language plpgsql as
           $$ begin perform pg_advisory_xact_lock(1); return null; end $$"""
    )
    db.execute(f"create trigger gate after {event} on holdfast.steps execute function public.wait_at_gate()")
    db.execute("select pg_advisory_lock(1)")


def test_lease_numbers_grow_and_never_repeat(db: DB, proof: Proof) -> None:
    """R5: released and claimed again a thousand times"""
    start(db)
    seen = []

    for _ in range(1000):
        step = claim_one(db)
        seen.append((step.attempt, step.lease_id))
        settle(db, step, Release())

    leases = [lease for _, lease in seen]
    assert [attempt for attempt, _ in seen] == list(range(1, 1001))
    assert leases == sorted(set(leases))
    proof.add(rounds=len(leases), twice=len(leases) - len(set(leases)))


def test_a_lease_number_that_was_rolled_back_is_not_given_out_again(db: DB) -> None:
    """R5"""
    start(db)
    with db.transaction(force_rollback=True):
        lost = claim_one(db)

    assert claim_one(db).lease_id > lost.lease_id


def test_a_sweep_and_a_completion_never_both_stand(db: DB, dsn: str, clock: Clock, proof: Proof) -> None:
    """R6: two connections let go together at each step whose lease has just run out"""
    for _ in range(ROUNDS):
        start(db)
    steps = [claim_one(db, lease=seconds(100 * number)) for number in range(1, ROUNDS + 1)]
    gate = threading.Barrier(2)

    def complete(own: DB) -> list[list[int]]:
        def one(step: ClaimedStep) -> list[int]:
            Clock(own).advance(seconds(100))
            return in_step(gate, partial(finish, own, [step]))

        return [one(step) for step in steps]

    def sweep(own: DB) -> list[list[int]]:
        return [in_step(gate, lambda: [i for i, _ in rescue(own)]) for _ in steps]

    completed, swept = at_once(dsn, complete, sweep)

    stood = [len(done) + len(rescued) for done, rescued in zip(completed, swept, strict=True)]
    proof.add(rounds=ROUNDS, lost=stood.count(0), twice=sum(count > 1 for count in stood))
    for step, done, rescued in zip(steps, completed, swept, strict=True):
        assert sorted(done + rescued) == [step.step_id]
        assert events(db, step=step.step_id) == ["claimed", "succeeded" if done else "expired"]


def test_what_is_reported_while_a_step_is_being_taken_over_is_refused(db: DB, dsn: str, clock: Clock) -> None:
    """R3 W-61: the report has read the old lease and waits for the row; when it has it, the lease is another's"""
    outcomes: list[Outcome] = [Done(), Fail("e"), Retry("e"), Snooze(seconds(0)), Continue(1), Release()]
    with psycopg.connect(dsn, autocommit=True) as late:
        for outcome in outcomes:
            start(db)
            old = claim_one(db, "a")
            clock.advance(LEASE + seconds(1))
            said: list[list[str]] = []
            report = threading.Thread(target=lambda o=outcome, s=old, to=said: to.append(settle(late, s, o)))
            with db.transaction():
                rescue(db)
                new = claim_one(db, "b")
                report.start()
                until_blocked(db, late.info.backend_pid)
            report.join()

            assert said == [[]]
            assert finish(db, [new]) == [old.step_id]


def test_many_workers_claim_each_task_once(db: DB, dsn: str, proof: Proof) -> None:
    """R21 W-39: 8 workers, 5000 tasks, never more rows than the batch"""
    staged(db, 5000)

    def work(name: str, own: DB) -> list[ClaimedStep]:
        taken: list[ClaimedStep] = []
        while batch := claim(own, name, batch=50):
            assert len(batch) <= 50
            assert len(finish(own, batch)) == len(batch)
            taken += batch
        return taken

    shares = at_once(dsn, *(partial(work, f"w{n}") for n in range(8)))

    each = Counter(step.step_id for share in shares for step in share)
    proof.add(rounds=8, lost=5000 - len(each), twice=each.total() - len(each))
    assert (len(each), set(each.values())) == (5000, {1})
    assert value(db, "select count(*) from holdfast.steps where state = 'done'") == 5000
    assert value(db, "select count(*) from holdfast.journal") == 10000
    assert value(db, "select count(distinct lease_id) from holdfast.journal") == 5000


def test_no_two_workers_hold_a_task_at_the_same_time(db: DB, dsn: str, clock: Clock) -> None:
    """W-39 C-62: workers that fall silent, and others that sweep; leases in the journal do not overlap"""
    staged(db, 200)
    db.execute("update holdfast.policies set tries = 100 where policy = 'work.task'")

    def work(name: str, own: DB) -> int:
        done = 0
        for number in range(60):
            batch = claim(own, name, batch=10)
            if number % 3 == 0:  # falls silent: the clock passes its leases, somebody sweeps
                Clock(own).advance(LEASE + seconds(1))
                rescue(own, batch=20)
            done += len(finish(own, batch))
        return done

    finished = at_once(dsn, *(partial(work, f"w{n}") for n in range(4)))

    rows = db.execute(
        """select step_id, array_agg(event order by id), array_agg(lease_id order by id)
             from holdfast.journal group by step_id"""
    ).fetchall()
    for _, moves, leases in rows:
        assert moves[::2] == ["claimed"] * len(moves[::2])
        assert set(moves[1::2]) <= {"expired", "succeeded"}
        assert leases[::2][: len(leases[1::2])] == leases[1::2]
        assert moves.count("succeeded") <= 1
    assert sum(finished) == value(db, "select count(*) from holdfast.steps where state = 'done'")


def test_one_key_gives_one_task_to_all_who_start_it_together(db: DB, dsn: str, proof: Proof) -> None:
    """R22"""
    ids = at_once(dsn, *[partial(start, key="order:1")] * 50)

    assert len(set(ids)) == 1
    made = value(db, "select count(*) from holdfast.steps")
    proof.add(rounds=len(ids), lost=int(made < 1), twice=made - 1)
    assert made == 1
    with pytest.raises(errors.KeyConflict, match=f"it started {ids[0]}"):
        start(db, given={"to": "somebody else"}, key="order:1")
    with pytest.raises(errors.KeyConflict):
        start(db, "another handler", key="order:1")


def test_one_key_gives_one_run_to_all_who_start_it_together(db: DB, dsn: str, proof: Proof) -> None:
    """R22"""

    def begin(own: DB, *steps: dict[str, str]) -> UUID:
        return start_flow(own, node("a"), node("b", "a"), *steps, key="order:1")

    ids = at_once(dsn, *[begin] * 50)

    assert len(set(ids)) == 1
    made = value(db, "select count(*) from holdfast.runs")
    proof.add(rounds=len(ids), lost=int(made < 1), twice=made - 1)
    assert value(db, "select array[count(*), (select count(*) from holdfast.steps)] from holdfast.runs") == [1, 2]
    with pytest.raises(errors.KeyConflict, match=f"it started {ids[0]}"):
        begin(db, node("c"))
    with pytest.raises(errors.KeyConflict):
        start(db, key="order:1")


def test_a_key_whose_starter_rolls_back_is_free_for_who_waits(db: DB, dsn: str) -> None:
    """R22: the second waits for the first, and is not told an id that never was"""
    with psycopg.connect(dsn, autocommit=True) as second:
        answer: list[int] = []
        waiter = threading.Thread(target=lambda: answer.append(start(second, key="k")))
        with db.transaction(force_rollback=True):
            gone = start(db, key="k")
            waiter.start()
            until_blocked(db, second.info.backend_pid)
        waiter.join()

    assert answer != [gone]
    assert value(db, "select array_agg(id) from holdfast.steps") == answer
    assert start(db, key="k") == answer[0]


def test_one_unique_key_gives_the_open_task_to_all_who_start_it_together(db: DB, dsn: str) -> None:
    ids = at_once(dsn, *[partial(start, unique_key="nightly")] * 20)

    assert len(set(ids)) == 1
    assert value(db, "select count(*) from holdfast.steps") == 1


def test_a_key_points_to_the_task_that_took_the_place_of_one_that_ended_meanwhile(db: DB, dsn: str) -> None:
    """The unique key's holder ends after the start has met it and before the start has read it"""
    start(db, unique_key="u")
    held = claim_one(db)
    shut_gate(db, "insert")
    with psycopg.connect(dsn, autocommit=True) as second:
        answer: list[int] = []
        starter = threading.Thread(target=lambda: answer.append(start(second, key="k", unique_key="u")))
        starter.start()
        until_blocked(db, second.info.backend_pid)
        finish(db, [held])
        db.execute("select pg_advisory_unlock(1)")
        starter.join()

    assert answer != [held.step_id]
    assert start(db, key="k", unique_key="u") == answer[0]
    assert column(db, answer[0], "state") == "pending"


def test_a_call_that_met_a_deadlock_is_made_again(db: DB, dsn: str) -> None:
    """40P01: it was undone whole, so it may be"""
    start_flow(db, node("a"))
    step = claim_one(db)
    shut_gate(db, "update")
    with psycopg.connect(dsn) as other, psycopg.connect(dsn, autocommit=True) as own:
        own.execute("set deadlock_timeout = '10 ms'")  # it finds the deadlock, and is the one to give way
        other.execute("set deadlock_timeout = '60 s'")
        other.execute("select from holdfast.runs for update")
        settled: list[list[int]] = []
        settler = threading.Thread(target=lambda: settled.append(finish(own, [step])))
        settler.start()
        until_blocked(db, own.info.backend_pid)
        crossing = threading.Thread(target=lambda: other.execute("select from holdfast.steps for update"))
        crossing.start()
        until_blocked(db, other.info.backend_pid)
        db.execute("select pg_advisory_unlock(1)")
        crossing.join()
        other.commit()
        settler.join()

    assert settled == [[step.step_id]]
