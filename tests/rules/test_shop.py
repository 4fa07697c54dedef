"""The HTTP channel against a simulated shop: what it sends, and what it makes of wrong answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import Env, Holdfast
from holdfast.errors import BadDefinition, Rejected, Unavailable
from holdfast.rules import Refusal, Rule, everything, percent
from holdfast.rules.channel import ChannelCall
from holdfast.rules.http import HttpChannel
from holdfast.testing import Clock, drain
from rules.shops import applied, by_item, found, halved, sent, some_items
from simulated import SimulatedShop, simulated_shop

pytestmark = pytest.mark.one_server
CALL = ChannelCall()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedShop]:
    with simulated_shop(tmp_path_factory.mktemp("shop"), "--token", "open", items=1200) as shop:
        yield shop


@pytest.fixture
def shop(running: SimulatedShop, monkeypatch: pytest.MonkeyPatch) -> SimulatedShop:
    monkeypatch.setenv("SHOP_TOKEN", "open")
    running.fail()
    return running


@pytest.fixture
def channel(hf: Holdfast, shop: SimulatedShop) -> HttpChannel:
    channel = HttpChannel(shop.url, token=Env("SHOP_TOKEN"), page=500)
    hf.rules.channel("shop", channel, batch=10)
    return channel


def test_a_run_is_applied_over_http(hf: Holdfast, shop: SimulatedShop, channel: HttpChannel) -> None:
    """A-118, A-89: each item is written once, with a key and a correlation id, over few connections."""
    items = some_items(25)
    run = hf.rules.preview(
        Rule("half", where=everything, change=percent(-50)), channel="shop", items=items,
        metadata={"correlationId": "c-9"}, apply=True,
    )  # fmt: skip
    drain(hf)

    assert {target.status for target in run.targets()} == {"APPLIED"}
    assert halved(shop, items)
    calls = [call for call in shop.calls() if call["correlation"] == "c-9"]
    assert sorted(len(call["ids"]) for call in calls) == [5, 10, 10]
    assert len({call["key"] for call in calls}) == 3
    assert run.summary.counts["unknown"] == 0


def test_items_are_listed_and_previewed(hf: Holdfast, channel: HttpChannel) -> None:
    """Three pages, with sku, tags and fields."""
    listed = list(channel.items(CALL))

    assert len(listed) == 1200
    assert listed[1] not in listed[2:]
    assert (listed[1].sku, listed[1].tags, listed[1].fields) == ("SKU-2", ("sale",), {"shelf": "2"})  # type: ignore[union-attr]


def test_an_automatic_try_sends_the_same_key_and_a_manual_retry_another(
    hf: Holdfast, shop: SimulatedShop, channel: HttpChannel, clock: Clock
) -> None:
    """The key is made from run, action, targets and the number of manual retries."""
    items = some_items(2)
    shop.fail({"name": "error_before", "count": 4})
    run = applied(hf, shop, items)
    for _ in range(4):
        drain(hf)
        clock.advance(20)
    run.retry_failed()
    drain(hf)

    keys = [call["key"] for call in shop.calls() if set(call["ids"]) == set(items)]
    assert len(keys) == 5
    assert len(set(keys[:4])) == 1
    assert keys[4] != keys[0]
    assert halved(shop, items)


def test_what_changed_since_the_preview_is_not_overwritten(
    hf: Holdfast, shop: SimulatedShop, channel: HttpChannel
) -> None:
    """R27: the target is stale, with what the shop shows; an item that shows the new price already is found."""
    items = some_items(3)
    run = applied(hf, shop, items)
    began = shop.prices(items)
    shop.edit(items[0], "1.23")
    shop.edit(items[1], str(float(began[items[1]]) / 2))
    drain(hf)

    targets = by_item(run)
    assert [targets[item].status for item in items] == ["FAILED", "APPLIED", "APPLIED"]
    assert targets[items[0]].reason == "stale"
    assert targets[items[0]].found_json == {"price": "1.23", "compareAt": None, "currency": "EUR"}
    assert shop.prices(items)[items[0]] == "1.23"
    assert shop.writes()[items[1]] == 0


def test_a_shop_that_cannot_compare_is_read_just_before_each_write(
    hf: Holdfast, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It says so in /health. A call weighs 2 then, because it reads and writes."""
    with simulated_shop(tmp_path_factory.mktemp("blind"), "--no-compare") as blind:
        items = ["item-1", "item-2", "item-3"]
        run = applied(hf, blind, items)
        blind.edit("item-2", "0.50")
        drain(hf)

        assert {item: target[1] for item, target in found(run).items()} == {
            "item-1": None, "item-2": "stale", "item-3": None,
        }  # fmt: skip
        assert [call["ids"] for call in blind.calls()] == [["item-1", "item-3"]]
        assert len(blind.calls("read")) == 2  # for the preview and before the write
    with hf.rules.connection() as connection:
        (weight,) = connection.execute(
            "select weight, call_weight from holdfast.kinds where kind = 'rules:shop'"
        ).fetchall()
    assert weight == ("0", 2)


WRONG: list[tuple[str, str]] = [
    ("not_json", "cannot be used"), ("cut_off", "RemoteProtocolError"), ("huge", "longer than"),
    ("short", "does not mention"), ("foreign", "does not mention"),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "said"), WRONG)
def test_a_wrong_answer_to_a_write_is_retried_and_found(
    hf: Holdfast, shop: SimulatedShop, channel: HttpChannel, clock: Clock, fault: str, said: str
) -> None:
    """The shop has written, and its answer cannot be used: the next try finds the new price."""
    items = some_items(2)
    shop.fail({"name": fault, "count": 1})
    run = applied(hf, shop, items)
    drain(hf)
    waiting = [target for target in run.targets() if target.status == "QUEUED"]
    clock.advance(3)
    drain(hf)

    assert waiting
    assert all(said in str(target.error) for target in waiting), waiting[0].error
    assert {target.status for target in run.targets()} == {"APPLIED"}
    assert halved(shop, items)


def test_prices_in_another_currency_or_as_numbers_are_refused(shop: SimulatedShop, channel: HttpChannel) -> None:
    """A number is not exact, whatever it is; another currency is another price."""
    shop.fail({"name": "number_price", "on": "all"})
    read = channel.read(["item-1"], CALL)["item-1"]
    listed = next(channel.items(CALL))
    shop.fail({"name": "other_currency", "on": "read"})
    other = channel.read(["item-1"], CALL)["item-1"]

    assert isinstance(read, Refusal)
    assert isinstance(listed, Refusal)
    assert (read.reason, listed.reason) == ("not_text", "not_text")
    assert other.currency == "USD"  # type: ignore[union-attr]


def test_an_item_in_another_currency_is_stale(hf: Holdfast, tmp_path_factory: pytest.TempPathFactory) -> None:
    with simulated_shop(tmp_path_factory.mktemp("blind"), "--no-compare") as blind:
        run = applied(hf, blind, ["item-1"])
        blind.fail({"name": "other_currency", "on": "read"})
        drain(hf)
        (target,) = run.targets()
    assert (target.reason, (target.found_json or {})["currency"]) == ("stale", "USD")


def test_a_redirect_is_not_followed_and_stops_the_run(hf: Holdfast, shop: SimulatedShop, channel: HttpChannel) -> None:
    items = some_items(25)
    shop.fail({"name": "redirect"})
    run = applied(hf, shop, items)
    drain(hf, concurrency=1)

    assert run.summary.status == "FAILED"
    assert "302" in str(run.summary.reason)
    assert len(sent(shop, items)) == 1


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"url": "ftp://shop"}, "url"), ({"url": "https://me:secret@shop"}, "url"),
        ({"url": "https://shop?a=1"}, "url"),
        ({"url": "https://shop", "token": "plain"}, "token"), ({"url": "https://shop", "page": 0}, "page"),
        ({"url": None}, "url"), ({"url": "https://shop:99999"}, "url"), ({"url": "https://shop", "page": "9"}, "page"),
        ({"url": "https://shop", "headers": {"X-Key": 5}}, "headers"),
        ({"url": "https://shop", "headers": "X-Key: secret"}, "headers"),
    ],
)  # fmt: skip
def test_a_channel_that_cannot_work_is_refused(given: dict[str, Any], where: str) -> None:
    with pytest.raises(BadDefinition) as refused:
        HttpChannel(**given)
    assert refused.value.where == where
    assert "secret" not in str(refused.value)


def test_secrets_are_named_and_not_shown(channel: HttpChannel, monkeypatch: pytest.MonkeyPatch) -> None:
    assert channel.about()["secrets"] == ["SHOP_TOKEN"]
    assert "open" not in repr(channel.about())
    monkeypatch.delenv("SHOP_TOKEN")
    with pytest.raises(Rejected) as refused:
        channel.read(["item-1"], CALL)
    assert (refused.value.code, refused.value.is_sent) == ("CONFIGURATION", False)


def test_health_says_whether_the_shop_can_be_used(shop: SimulatedShop, channel: HttpChannel) -> None:
    assert channel.health() == (True, "1200 items")
    assert channel.compares
    shop.fail({"name": "error_before", "on": "health"})
    assert not channel.health().ok
    gone = HttpChannel("http://127.0.0.1:9")
    assert not gone.health().ok
    with pytest.raises(Unavailable) as refused:
        _ = gone.compares
    assert not refused.value.is_sent


def test_connections_are_kept_open(shop: SimulatedShop, channel: HttpChannel) -> None:
    """`connectors.http` opens one per call for handlers, and keeps those of a channel."""
    for _ in range(5):
        channel.read(["item-1"], CALL)
    pool = channel._session._client._transport._pool
    assert len(pool.connections) == 1
