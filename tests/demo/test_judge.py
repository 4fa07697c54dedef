"""The demo's check can fail: each figure is counted from evidence, and evidence against it is found."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.demo import push_play, story, tick_play, workload
from holdfast.demo.feed_play import judged as feed_judged
from holdfast.demo.judge import judge
from holdfast.demo.label_play import judged as labels_judged
from holdfast.demo.order_play import judged
from holdfast.demo.outlet_play import EDITED, ITEMS, OutletFacts
from holdfast.demo.outlet_play import judged as outlet_judged
from holdfast.demo.push_play import PushFacts
from holdfast.demo.sale_play import judged as sale_judged
from holdfast.demo.shop_play import judged as shops_judged
from holdfast.demo.tasks import HOPELESS
from holdfast.kernel import calls
from holdfast.kernel import db as kernel
from holdfast.models import Done, Settlement
from holdfast.reads import demo
from holdfast.reads.demo import Load, Move, OrderFacts, StepRecord, TickFacts
from holdfast.reads.demo_feed import FeedFacts
from holdfast.reads.demo_labels import LabelFacts
from holdfast.reads.demo_sale import SaleFacts
from holdfast.reads.demo_shops import ShopFacts, Span

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


def test_shops_whose_limit_was_not_kept_are_found():
    at = datetime(2026, 1, 1, tzinfo=UTC)

    def span(shop, began, ended, status=None):
        end = None if ended is None else at + timedelta(seconds=ended)
        return Span(shop, at + timedelta(seconds=began), end, status)

    leases = [
        span("acme", 0, 1),
        span("acme", 0, 2),
        span("acme", 1, 2),
        span("globex", 0, 0.5),
        span("globex", 1.5, 2),
    ]
    calls = [span("acme", 0.6, 0.9, 200), span("globex", 0.1, 0.5, 429), span("globex", 1.6, 1.9, 200)]
    fine = ShopFacts(36, leases, [span("globex", 0.5, 1.5)], calls)

    assert all(finding.holds for finding in shops_judged(fine))
    for facts, named in (
        (replace(fine, done=35), {"shops: prices updated"}),
        (replace(fine, leases=[*leases, span("acme", 0.5, None)]), {"shops: claims at once"}),
        (replace(fine, leases=[]), {"shops: claims at once"}),
        (replace(fine, calls=[*calls, *[span("initech", 0, None)] * 3]), {"shops: calls at once"}),
        (replace(fine, calls=[calls[0], *calls[2:]]), {"shops: 429 with Retry-After", "shops: claims while closed"}),
        (replace(fine, leases=[*leases, span("globex", 1.4, 1.6)]), {"shops: claims while closed"}),
        (replace(fine, pauses=[span("globex", 0.5, 1.4)]), {"shops: claims while closed"}),
        (replace(fine, pauses=[]), {"shops: claims while closed", "shops: others meanwhile"}),
        (replace(fine, calls=calls[1:]), {"shops: others meanwhile"}),
    ):
        assert {finding.what for finding in shops_judged(facts) if not finding.holds} == named


def test_a_schedule_that_did_not_tick_as_it_must_is_found():
    fine = TickFacts(ticks=5, seconds=5, tasks=5)

    assert all(finding.holds for finding in tick_play.judged(fine))
    for facts in (replace(fine, ticks=4, tasks=4), replace(fine, tasks=6), TickFacts(2, 2, 2)):
        assert [finding.holds for finding in tick_play.judged(facts)].count(False) == 1


def test_pushes_that_did_not_go_as_they_must_are_found():
    fine = PushFacts(refused=401, queued=3, repeated=0, deployed=1, live=4, cancelled=1, stale=1)

    assert all(finding.holds for finding in push_play.judged(fine))
    for changes in (
        {"refused": 202}, {"queued": 2}, {"repeated": 1}, {"deployed": 0}, {"live": 0}, {"cancelled": 0}, {"stale": 0},
    ):  # fmt: skip
        assert [finding.holds for finding in push_play.judged(replace(fine, **changes))].count(False) == 1


def test_a_sale_that_did_not_go_as_it_must_is_found():
    planned = SaleFacts("PREVIEW", 200, 0, 0, 0, 0, is_edit_kept=False)
    ended = SaleFacts("PARTIAL", 200, 199, 1, 199, 0, is_edit_kept=True)

    assert all(finding.holds for finding in sale_judged(planned, ended, is_retried=True))
    for before, after, is_retried, named in (
        (replace(planned, written=1), ended, True, "sale: planned"),
        (planned, replace(ended, applied=198), True, "sale: applied"),
        (planned, replace(ended, is_edit_kept=False), True, "sale: stale"),
        (planned, ended, False, "sale: retried"),
        (planned, replace(ended, twice=1), True, "sale: written twice"),
    ):
        findings = sale_judged(before, after, is_retried=is_retried)
        assert [finding.what for finding in findings if not finding.holds] == [named]


def test_an_outlet_whose_sale_did_not_go_as_it_must_is_found():
    fine = OutletFacts(ITEMS, 0, 1, 1.02, 1, ITEMS, (EDITED,), ITEMS - 1, 1, is_edit_kept=True, twice=0)

    assert all(finding.holds for finding in outlet_judged(fine))
    for changes, named in (
        ({"planned": 39}, "outlet: planned"),
        ({"early": 1}, "outlet: planned"),
        ({"throttled": 0}, "outlet: 429"),
        ({"waited": 0.9}, "outlet: 429"),
        ({"failed": 0}, "outlet: refused"),
        ({"applied": 39}, "outlet: applied"),
        ({"drift": ()}, "outlet: drift"),
        ({"drift": ("item-1",)}, "outlet: drift"),
        ({"rolled_back": ITEMS}, "outlet: rolled back"),
        ({"conflicts": 0}, "outlet: conflicts"),
        ({"is_edit_kept": False}, "outlet: conflicts"),
        ({"twice": 1}, "outlet: written twice"),
    ):
        findings = outlet_judged(replace(fine, **changes))
        assert [finding.what for finding in findings if not finding.holds] == [named]


def test_a_feed_that_did_not_go_as_it_must_is_found():
    fine = FeedFacts(20_000, 20_000, 1, 0, "completed", 1, 3, 0, 1, "completed", is_marked=True)

    assert all(finding.holds for finding in feed_judged(fine))
    for changes, named in (
        ({"read": 20_001}, "feed: records read"),
        ({"state": "failed"}, "feed: records read"),
        ({"failed": 1}, "feed: records read"),
        ({"rescued": 0}, "feed: partitions rescued"),
        ({"refused": 0}, "feed: 429"),
        ({"twice": 1}, "feed: counted twice"),
        ({"quarantined": 0}, "feed: quarantined"),
        ({"live": 19_999}, "feed: records stored"),
        ({"then_state": "failed"}, "feed: late records"),
        ({"is_marked": False}, "feed: late records"),
    ):
        findings = feed_judged(replace(fine, **changes))
        assert [finding.what for finding in findings if not finding.holds] == [named]


def test_labels_that_did_not_go_as_they_must_are_found():
    fine = LabelFacts(printed=119, twice=0, calls=6, largest=20, mixed=0, failed=1)

    assert all(finding.holds for finding in labels_judged(fine))
    for changes, named in (
        ({"printed": 118}, "labels: printed"),
        ({"calls": 119}, "labels: calls"),
        ({"largest": 21}, "labels: calls"),
        ({"mixed": 1}, "labels: of two carriers"),
        ({"failed": 20}, "labels: failed"),
        ({"failed": 0}, "labels: failed"),
        ({"twice": 1}, "labels: printed twice"),
    ):
        findings = labels_judged(replace(fine, **changes))
        assert [finding.what for finding in findings if not finding.holds] == [named]
