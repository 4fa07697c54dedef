"""Mutants of the way shops are treated: each one makes the test of its behaviour fail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast import Holdfast
from holdfast.rules.apply import Try
from holdfast.rules.http import HttpChannel
from holdfast.rules.treatment import Treatment
from holdfast.testing import Clock, drain
from rules import test_error_classes, test_shop, test_shop_limits
from rules.shops import applied, sent, some_items
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
    clock.fix_chance(0.5)
    return running


def test_a_write_without_reading_is_caught(
    hf: Holdfast, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a shop that cannot compare it overwrites what somebody changed."""
    monkeypatch.setattr(Try, "_judged", lambda *_: {})
    with pytest.raises(AssertionError):
        test_shop.test_a_shop_that_cannot_compare_is_read_just_before_each_write(hf, tmp_path_factory)


def test_giving_up_without_reading_is_caught(
    hf: Holdfast, shop: SimulatedShop, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A price that was written would be reported as failed."""
    monkeypatch.setattr(Try, "_given_up", lambda _self, made: made)
    with pytest.raises(AssertionError):
        test_error_classes.test_what_was_written_is_found_by_the_last_read(hf, shop, clock)


def test_a_503_taken_for_a_429_is_caught(hf: Holdfast, shop: SimulatedShop, clock: Clock) -> None:
    """It would close the limit for everybody."""
    taken = {503: Treatment("RATE_LIMIT", retries=True)}
    hf.rules.channel("shop", HttpChannel(shop.url), batch=10, errors=taken)
    with pytest.raises(AssertionError):
        test_shop_limits.test_a_503_is_no_rate_limit(hf, shop, clock)


def test_a_breaker_that_is_not_in_its_row_is_caught(hf: Holdfast, shop: SimulatedShop, dsn: str) -> None:
    """Without the row the next worker would not obey it."""
    hf.rules.channel("shop", HttpChannel(shop.url), charge_rate_limits=False, breaker_after=1000)
    with pytest.raises(AssertionError):
        stopped_by_a_count_of_its_own(hf, shop, dsn)


def stopped_by_a_count_of_its_own(hf: Holdfast, shop: SimulatedShop, dsn: str) -> None:
    """The first worker stops after six rate limits, as if its process had counted them."""
    shop.fail({"name": "rate_limited", "retry_after": "0", "count": 6})
    items = some_items(2)
    applied(hf, shop, items[:1])
    drain(hf)
    other = Holdfast(dsn)
    try:
        applied(other, shop, items[1:], breaker_after=1000)
        drain(other)
    finally:
        other.close()
    assert len(sent(shop, items)) == 6
