"""A shop that limits its callers: the limit closes for all, and a breaker opens after six refusals in a row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast import Holdfast
from holdfast.rules import Rule, percent, tag
from holdfast.rules.http import HttpChannel
from holdfast.testing import Clock, drain
from rules.shops import HALF, applied, by_item, found, halved, limit, sent, some_items, wait_of
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


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("3", 3, 3), ("2.5", 2.5, 2.5), ("date+30", 28, 31), ("date-60", 16, 16), ("-1", 16, 16), ("1e9", 16, 16),
        ("junk", 16, 16), ("1000000000", 3600, 3600), (None, 16, 16),
    ],
)  # fmt: skip
def test_a_rate_limit_closes_the_limit_for_all_until_retry_after(
    hf: Holdfast, shop: SimulatedShop, clock: Clock, header: str | None, least: float, most: float
) -> None:
    """R28, A-54, A-55, C-04: both forms, bounded; what cannot be read counts as absent."""
    items = some_items(2)
    shop.fail({"name": "rate_limited", "count": 1, "retry_after": header})
    run = applied(hf, shop, items[:1])
    drain(hf)
    wait = wait_of(run, clock)
    other = hf.rules.preview(HALF, channel="shop", items=items[1:], apply=True)
    drain(hf)
    began = [target.status for target in other.targets()]
    clock.advance(wait + 0.001)
    drain(hf)

    assert least <= wait <= most
    assert began == ["QUEUED"]  # of another run: it waits too
    assert [target.status for each in (run, other) for target in each.targets()] == ["APPLIED", "APPLIED"]
    assert halved(shop, items)


def test_rate_limits_in_a_row_wait_16_32_and_64_seconds_and_use_up_the_tries(
    hf: Holdfast, shop: SimulatedShop, clock: Clock
) -> None:
    """A-56, A-58, C-91: four in a row fail the target."""
    items = some_items(1)
    shop.fail({"name": "rate_limited"})
    run = applied(hf, shop, items)
    waits = []
    for _ in range(3):
        drain(hf)
        waits.append(wait_of(run, clock))
        clock.advance(waits[-1])
    drain(hf)

    assert waits == [16, 32, 64]
    assert len(sent(shop, items)) == 4
    assert found(run) == {items[0]: ("FAILED", "max_retries", "RATE_LIMIT")}
    assert by_item(run)[items[0]].attempts == 3


def test_the_row_of_rate_limits_ends_with_another_error(hf: Holdfast, shop: SimulatedShop, clock: Clock) -> None:
    """The ordinal is that of rate limits in a row, not of all failures."""
    run = applied(hf, shop, some_items(1))
    waits = []
    for fault in ("rate_limited", "error_before", "rate_limited"):
        shop.fail({"name": fault})
        drain(hf)
        waits.append(wait_of(run, clock))
        clock.advance(waits[-1])

    assert waits == [16, 4, 16]


def test_rate_limits_may_cost_no_tries(hf: Holdfast, shop: SimulatedShop, clock: Clock) -> None:
    """A-58: unlimited when configured off; the delays grow all the same."""
    items = some_items(1)
    shop.fail({"name": "rate_limited", "count": 5})
    run = applied(hf, shop, items, charge_rate_limits=False)
    waits = []
    for _ in range(5):
        drain(hf)
        waits.append(wait_of(run, clock))
        clock.advance(waits[-1])
    before = by_item(run)[items[0]].attempts
    drain(hf)

    assert waits == [16, 32, 64, 64, 64]
    assert before == 0
    assert found(run) == {items[0]: ("APPLIED", None, None)}


def test_the_sixth_rate_limit_in_a_row_opens_the_breaker_for_a_minute(
    hf: Holdfast, shop: SimulatedShop, clock: Clock
) -> None:
    """A-59, A-60, C-05, R28: a whole throttled call counts once, one probe follows, and a success closes it."""
    items = some_items(10)
    throttled = {"name": "rate_limited", "retry_after": "0"}
    shop.fail({**throttled, "count": 5})
    run = applied(hf, shop, items, charge_rate_limits=False)
    drain(hf, concurrency=1)
    counted = limit(hf)[2]
    assert halved(shop, items)  # five, then successes: no pause
    assert limit(hf)[1] is None

    more = some_items(10)
    shop.fail(throttled)
    hf.rules.preview(HALF, channel="shop", items=more, apply=True)
    drain(hf, concurrency=1)
    calls, opened = len(sent(shop, more)), limit(hf)[1]
    clock.advance(59)
    drain(hf, concurrency=1)
    quiet = len(sent(shop, more))
    shop.fail()
    clock.advance(1.001)
    drain(hf, concurrency=1)

    assert counted == 0
    assert (calls, quiet) == (6, 6)
    assert opened is not None
    assert len(sent(shop, more)[6]) == 1  # the probe
    assert halved(shop, more)
    assert limit(hf)[1] is None
    with hf.rules.connection() as connection:
        said = connection.execute(
            """select event_type, payload ->> 'message', payload ->> 'channel' from rules.events
                where event_type like 'automation.channel.%' order by id"""
        ).fetchall()
    assert said == [
        ("automation.channel.paused", "Circuit breaker triggered", "shop"),
        ("automation.channel.resumed", None, "shop"),
    ]  # fmt: skip
    assert {target.status for target in run.targets()} == {"APPLIED"}


def test_the_breaker_is_a_row_that_every_worker_obeys(hf: Holdfast, shop: SimulatedShop, dsn: str) -> None:
    """A-60: opened by one worker, it stops another one, also after a restart."""
    items = some_items(2)
    shop.fail({"name": "rate_limited", "retry_after": "0"})
    applied(hf, shop, items[:1], charge_rate_limits=False)
    drain(hf)
    assert len(sent(shop, items)) == 6

    other = Holdfast(dsn)
    applied(other, shop, items[1:], charge_rate_limits=False)
    drain(other)
    other.close()
    assert len(sent(shop, items)) == 6


def test_a_503_is_no_rate_limit(hf: Holdfast, shop: SimulatedShop, clock: Clock) -> None:
    """C-03: its Retry-After is honoured, but the limit stays open and the breaker does not count it."""
    items = some_items(2)
    shop.fail({"name": "busy", "count": 1, "retry_after": "7"})
    run = applied(hf, shop, items[:1])
    drain(hf)

    assert wait_of(run, clock) == 7
    assert found(run)[items[0]][2] == "SERVER_ERROR"
    assert limit(hf)[:3] == (None, None, 0)
    other = hf.rules.preview(HALF, channel="shop", items=items[1:], apply=True)
    drain(hf)
    assert [target.status for target in other.targets()] == ["APPLIED"]


def test_a_scheduled_preview_is_charged_for_each_page_that_it_reads(
    hf: Holdfast, shop: SimulatedShop, clock: Clock
) -> None:
    """A-54, A-120: a walk through the whole shop cost no more than one call."""
    hf.rules.channel("shop", HttpChannel(shop.url, page=100), rate=1, per="1h", burst=50)
    hf.rules.schedule(Rule("none", where=tag("none"), change=percent(-50)), channel="shop", every="1h")
    drain(hf)
    clock.advance(3601)
    with hf.rules.connection() as connection:
        connection.execute("select * from holdfast.fire_schedules()")
    drain(hf)

    assert limit(hf)[3] == 50 - 400 / 100
