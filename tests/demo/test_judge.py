"""The demo's check can fail: each figure is counted from evidence, and evidence against it is found."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.demo import story, tick_play, workload
from holdfast.demo.judge import judge
from holdfast.demo.order_play import judged
from holdfast.demo.tasks import HOPELESS
from holdfast.kernel import calls
from holdfast.kernel import db as kernel
from holdfast.models import Done, Settlement
from holdfast.reads import demo
from holdfast.reads.demo import Load, Move, OrderFacts, StepRecord, TickFacts

LOAD = Load("demo-1", asked=4, hopeless=1, after=0, until=4)
FINE = [
    StepRecord(1, "demo.send_welcome", claims=1, rescues=0, successes=1, failures=0, effects=1),
    StepRecord(2, "demo.resize_image", claims=2, rescues=1, successes=1, failures=0, effects=1),
    StepRecord(3, "demo.charge_card", claims=2, rescues=0, successes=1, failures=0, effects=1),
    StepRecord(4, HOPELESS, claims=3, rescues=0, successes=0, failures=1, effects=0),
]


def wrong(verdict):
    return {finding.what for finding in verdict.findings() if not finding.holds}


def test_what_went_well_holds():
    verdict = judge(LOAD, FINE, killed=1)

    assert verdict.holds
    assert (verdict.attempts, verdict.rescued, verdict.lost, verdict.twice) == (8, 1, 0, 0)


@pytest.mark.parametrize(
    ("found", "named"),
    [
        (replace(FINE[0], effects=2), {"accepted twice"}),
        (replace(FINE[0], successes=2), {"accepted twice"}),
        (replace(FINE[0], effects=0), {"lost"}),
        (replace(FINE[0], successes=0, effects=0), {"done", "lost"}),
        (replace(FINE[0], successes=0, failures=1, effects=1), {"done", "half done"}),
        (replace(FINE[0], successes=0, failures=1, effects=0), {"done"}),
    ],
)
def test_what_went_wrong_with_one_task_is_found(found, named):
    """An effect written twice, an effect that is missing, an effect of a task that failed, a task that is not over."""
    verdict = judge(LOAD, [found, *FINE[1:]], killed=1)

    assert wrong(verdict) == named
    assert not verdict.holds


def test_a_task_that_is_not_there_is_lost():
    verdict = judge(LOAD, FINE[1:], killed=1)

    assert (verdict.lost, wrong(verdict)) == (1, {"started", "done", "lost"})


def test_a_demo_without_a_killed_worker_or_without_a_rescue_proves_nothing():
    assert wrong(judge(LOAD, FINE, killed=0)) == {"workers killed with -9"}
    assert wrong(judge(LOAD, [replace(one, rescues=0) for one in FINE], killed=1)) == {"rescued from it"}


def test_the_evidence_is_read_from_the_journal_and_the_effects(db, clock):
    """W-35, W-61: claimed by one, expired, claimed by another, done; and an effect written twice is seen."""
    workload.prepare(db)
    started = workload.start(db, "demo-1", 4, 0.0)
    (first,) = kernel.run(db, calls.claim_steps("a/1", "demo-1", ["demo.send_welcome"], lease=timedelta(seconds=1)))
    assert demo.held_by(db, started, "a/1") == {first.step_id}
    clock.advance(timedelta(seconds=2))
    kernel.run(db, calls.rescue_steps())
    (second,) = kernel.run(db, calls.claim_steps("b/1", "demo-1", ["demo.send_welcome"]))
    db.execute("insert into holdfast_demo.effects values (%s, 2, 'b/1'), (%s, 2, 'b/1')", [first.step_id] * 2)
    kernel.run(db, calls.settle_steps([Settlement(second.step_id, second.lease_id, Done())]))

    found = {one.step_id: one for one in demo.evidence(db, started, "a/1")}

    assert len(found) == 4
    assert found[first.step_id] == StepRecord(first.step_id, "demo.send_welcome", 2, 1, 1, 0, 2)
    assert judge(started, list(found.values()), killed=1).twice == 1
    assert demo.evidence(db, started, "another")[0].rescues == 0
    assert [line.state for line in story.tell(db, first.step_id)] == [
        "pending",
        "running",
        "pending",
        "running",
        "done",
    ]


def test_a_story_says_whose_lease_ran_out():
    at = datetime(2026, 1, 1, tzinfo=UTC)
    moves = [
        Move(at, "created", "pending", "", 0, None),
        Move(at + timedelta(seconds=1), "claimed", "running", "worker-1/ab", 7, None),
        Move(at + timedelta(seconds=3), "expired", "pending", "rescue", 7, None),
        Move(at + timedelta(seconds=4), "claimed", "running", "worker-2/cd", 9, None),
        Move(at + timedelta(seconds=5), "retried", "pending", "worker-2/cd", 9, "CardDeclined"),
    ]

    told = [line.what for line in story.in_words(moves)]

    assert told == [
        "started",
        "claimed by worker-1 under lease 7",
        "lease 7 of worker-1 ran out: recovered",
        "claimed by worker-2 under lease 9",
        "retried: CardDeclined",
    ]


@pytest.mark.parametrize("count", [30, 300, 3001])
def test_the_kinds_make_up_what_was_asked_for(count):
    shares = workload.shares(count)
    kinds = [kind for kind, _ in workload.mixed(shares, 0.1)]

    assert sum(shares.values()) == len(kinds) == count
    assert shares[HOPELESS] >= 1
    assert {kind: kinds.count(kind) for kind in shares} == shares


def test_an_order_that_did_not_go_as_it_must_is_found():
    fine = OrderFacts(parcels=4, retried=1, waited=1.01, resolved=1, twice=0)

    kept = next(each for each in judged(replace(fine, waited=0.9996), "complete") if "Retry-After" in each.what)
    assert (kept.count, kept.holds) == (1, True)
    assert all(finding.holds for finding in judged(fine, "complete"))
    for found in (
        judged(replace(fine, parcels=3), "complete"),
        judged(replace(fine, retried=0), "complete"),
        judged(replace(fine, waited=0.4), "complete"),
        judged(replace(fine, resolved=0), "complete"),
        judged(replace(fine, twice=1), "complete"),
        judged(fine, "error"),
    ):
        assert [finding.holds for finding in found].count(False) == 1


def test_a_schedule_that_did_not_tick_as_it_must_is_found():
    fine = TickFacts(ticks=5, seconds=5, tasks=5)

    assert all(finding.holds for finding in tick_play.judged(fine))
    for facts in (replace(fine, ticks=4, tasks=4), replace(fine, tasks=6), TickFacts(2, 2, 2)):
        assert [finding.holds for finding in tick_play.judged(facts)].count(False) == 1
