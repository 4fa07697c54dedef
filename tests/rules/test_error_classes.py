"""A shop that fails: each failure is reported as what it is, and nothing is written twice or lost."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from psycopg import Connection

from holdfast import Holdfast
from holdfast.rules.handle import RuleRun
from holdfast.rules.http import HttpChannel
from holdfast.testing import Clock, drain
from rules.shops import applied, by_item, found, halved, limit, sent, some_items, wait_of
from simulated import SimulatedShop, simulated_shop

pytestmark = pytest.mark.one_server


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedShop]:
    with simulated_shop(tmp_path_factory.mktemp("shop"), items=400) as shop:
        yield shop


@pytest.fixture
def shop(running: SimulatedShop, clock: Clock) -> SimulatedShop:
    running.fail()
    clock.freeze()
    clock.fix_chance(0.5)  # no jitter
    return running


@pytest.mark.parametrize("fault", ["error_before", "error_after", "reset", "lost_before", "lost_after"])
def test_what_passes_is_retried_after_2_4_and_8_seconds(
    hf: Holdfast, shop: SimulatedShop, clock: Clock, fault: str
) -> None:
    """A-33, A-44, A-125: whether or not the shop had written, the price is written once."""
    items = some_items(3)
    shop.fail({"name": fault, "count": 3})
    run = applied(hf, shop, items)
    waits = []
    for _ in range(3):
        drain(hf)
        if all(target.status == "APPLIED" for target in run.targets()):
            break
        waits.append(wait_of(run, clock))
        clock.advance(waits[-1])
    drain(hf)

    assert waits == [2, 4, 8][: len(waits)]
    assert {target.status for target in run.targets()} == {"APPLIED"}
    assert halved(shop, items)


def test_an_item_that_is_refused_fails_alone(hf: Holdfast, shop: SimulatedShop) -> None:
    """A-62: one call, no retry, and the others go on."""
    items = some_items(4)
    shop.fail({"name": "refused", "items": items[:1]})
    run = applied(hf, shop, items)
    drain(hf)

    assert found(run)[items[0]] == ("FAILED", "unrecoverable", "VALIDATION")
    assert by_item(run)[items[0]].attempts == 0
    assert halved(shop, items[1:])
    assert (run.summary.status, len(sent(shop, items))) == ("PARTIAL", 1)


def test_an_authorization_error_stops_the_run(hf: Holdfast, shop: SimulatedShop) -> None:
    """A-07, A-14, C-08, C-87: the call in flight fails, nothing more is sent, and the rest keeps its state."""
    items = some_items(25)
    shop.fail({"name": "unauthorized"})
    run = applied(hf, shop, items)
    drain(hf, concurrency=1)

    by_state = [target.status for target in run.targets()]
    assert (by_state.count("FAILED"), by_state.count("QUEUED")) == (10, 15)
    assert run.summary.status == "FAILED"
    assert "401" in str(run.summary.error)
    assert "AUTHORIZATION" in str(run.summary.reason)
    assert len(sent(shop, items)) == 1
    assert {target.reason for target in run.targets("FAILED")} == {"unrecoverable"}

    shop.fail()
    run.retry_all()
    drain(hf)
    assert (run.summary.status, halved(shop, items)) == ("APPLIED", True)


def test_a_run_that_stops_after_some_prices_is_partial(hf: Holdfast, shop: SimulatedShop) -> None:
    """C-08: what changed a price can be rolled back."""
    items = some_items(25)
    run = applied(hf, shop, items)
    shop.fail({"name": "unauthorized", "items": items[-10:]})
    drain(hf, concurrency=1)

    counts = run.summary.counts
    assert run.summary.status == "PARTIAL"
    assert counts["applied"] > 0
    assert counts["applied"] + counts["failed"] + counts["left"] == 25


def test_a_missing_credential_stops_the_run_before_anything_is_sent(
    hf: Holdfast, shop: SimulatedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast import Env

    monkeypatch.setenv("SHOP_KEY", "k")
    hf.rules.channel("shop", HttpChannel(shop.url, headers={"X-Key": Env("SHOP_KEY")}), batch=2)
    items = some_items(6)
    run = applied(hf, shop, items)
    monkeypatch.delenv("SHOP_KEY")
    drain(hf, concurrency=1)

    assert (run.summary.status, sent(shop, items)) == ("FAILED", [])
    assert "SHOP_KEY" in str(run.summary.reason)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_call_that_is_refused_is_split_until_the_culprit_stands_alone(
    hf: Holdfast, shop: SimulatedShop, status: int
) -> None:
    """A-62: nothing is charged to a target's budget, and every call is charged to the limit."""
    items = some_items(16)
    shop.fail({"name": "rejected", "status": status, "items": items[5:6]})
    run = applied(hf, shop, items, batch=16, rate=1000, per=3600)
    drain(hf)

    good = [item for item in items if item != items[5]]
    assert halved(shop, good)
    assert found(run)[items[5]] == ("FAILED", "unrecoverable", "VALIDATION")
    assert {target.attempts for target in run.targets()} == {0}
    sizes = sorted(map(len, sent(shop, items)), reverse=True)
    assert sizes == [16, 8, 8, 4, 4, 2, 2, 1, 1]
    assert limit(hf)[3] == 1000 - len(sizes)
    assert run.summary.counts["failed"] == 1


def test_halves_are_formed_by_every_claim_alike(hf: Holdfast, shop: SimulatedShop, db: Connection[Any]) -> None:
    """The mark is in the row, so that whoever claims forms the same calls."""
    items = some_items(8)
    shop.fail({"name": "rejected", "count": 1})
    applied(hf, shop, items, batch=8)
    drain(hf)

    assert sorted(map(len, sent(shop, items))) == [4, 4, 8]
    keys = db.execute("select distinct batch_key from holdfast.steps where machine = 'rules.target'").fetchall()
    assert len(keys) == 2


def unknown(hf: Holdfast, shop: SimulatedShop, clock: Clock, *faults: dict[str, Any]) -> tuple[RuleRun, list[str]]:
    """Apply to one item; the last of some faults goes on to the end of its tries."""
    items = some_items(1)
    run = applied(hf, shop, items)
    for fault in faults:
        shop.fail(fault, {"name": "error_before", "on": "read"})
        drain(hf)
        clock.advance(20)
    return run, items


LOST, DOWN = {"name": "lost_after"}, {"name": "error_before"}


def test_what_cannot_be_read_at_the_end_is_unknown_and_a_retry_settles_it(
    hf: Holdfast, shop: SimulatedShop, clock: Clock
) -> None:
    """The first try wrote and its answer was lost; then the shop was down, for reads too."""
    run, items = unknown(hf, shop, clock, LOST, DOWN, DOWN, DOWN)

    assert found(run) == {items[0]: ("FAILED", "outcome_unknown", "SERVER_ERROR")}
    assert (run.summary.counts["failed"], run.summary.counts["unknown"]) == (1, 1)
    shop.fail()
    run.retry_failed()
    assert run.summary.counts["unknown"] == 0
    drain(hf)
    assert found(run) == {items[0]: ("APPLIED", None, None)}
    assert halved(shop, items)
    assert run.summary.counts["unknown"] == 0


def test_what_was_written_is_found_by_the_last_read(hf: Holdfast, shop: SimulatedShop, clock: Clock) -> None:
    """A target is read once more before it is given up."""
    items = some_items(1)
    run = applied(hf, shop, items)
    for fault in (LOST, DOWN, DOWN, DOWN):
        shop.fail(fault)
        drain(hf)
        clock.advance(20)

    assert found(run) == {items[0]: ("APPLIED", None, None)}
    assert halved(shop, items)
    with hf.rules.connection() as connection:
        effect = connection.execute("select effect from rules.price_changes").fetchall()
    assert effect == [("found",)]


def test_what_was_never_written_fails_as_known(hf: Holdfast, shop: SimulatedShop, clock: Clock) -> None:
    """The last read shows the old price: the target failed, and its outcome is not unknown."""
    items = some_items(1)
    shop.fail({"name": "lost_before"})
    run = applied(hf, shop, items)
    for _ in range(4):
        drain(hf)
        clock.advance(20)

    assert found(run) == {items[0]: ("FAILED", "max_retries", "NETWORK")}
    assert run.summary.counts["unknown"] == 0


def test_a_shop_that_cannot_be_reached_leaves_nothing_unknown(hf: Holdfast, shop: SimulatedShop, clock: Clock) -> None:
    """A request that was never sent has written nothing, so that there is nothing to read."""
    hf.rules.channel("shop", channel := HttpChannel(shop.url))
    run = applied(hf, shop, some_items(1))
    channel.url = "http://127.0.0.1:9"
    for _ in range(4):
        drain(hf)
        clock.advance(20)

    (target,) = run.targets()
    assert (target.reason, target.error_class, run.summary.counts["unknown"]) == ("max_retries", "NETWORK", 0)


def test_a_slow_answer_is_a_timeout_and_the_price_is_found(hf: Holdfast, shop: SimulatedShop, clock: Clock) -> None:
    """A call that timed out says nothing about its targets: the next try compares."""
    items = some_items(2)
    shop.fail({"name": "slow", "seconds": 3, "count": 1})
    run = applied(hf, shop, items, request_timeout=1)
    drain(hf)
    classes = {target.error_class for target in run.targets()}
    clock.advance(timedelta(seconds=3))
    drain(hf)

    assert classes == {"TIMEOUT"}
    assert {target.status for target in run.targets()} == {"APPLIED"}
    assert halved(shop, items)
