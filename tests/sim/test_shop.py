"""The simulated shop: it speaks the protocol, logs every value, and fails as it is told to."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.connectors import http
from holdfast.errors import BadInput, RateLimited, Rejected, Unavailable
from holdfast.sim.faults import Fault, read_fault
from simulated import SimulatedShop, simulated_shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedShop]:
    with simulated_shop(tmp_path_factory.mktemp("shop"), items=250) as running:
        yield running


def change(item_id: str, price: str, expected: str | None = None) -> dict[str, Any]:
    more = {} if expected is None else {"expected": {"price": expected, "currency": "EUR"}}
    return {"id": item_id, "price": price, **more}


def write(shop: SimulatedShop, *changes: dict[str, Any], key: str | None = None) -> list[dict[str, Any]]:
    answer = http.call("POST", f"{shop.url}/prices", json={"changes": changes}, key=key, timeout=10)
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def values(shop: SimulatedShop, item_id: str) -> list[tuple[str, str]]:
    return [(each["price"], each["by"]) for each in shop.entries("value") if each["item"] == item_id]


def test_items_are_listed_in_pages(shop: SimulatedShop) -> None:
    first = http.call("GET", f"{shop.url}/items?limit=200").json()
    second = http.call("GET", f"{shop.url}/items?limit=200&after={first['next']}").json()

    assert (len(first["items"]), len(second["items"]), second["next"]) == (200, 50, None)
    assert first["items"][1] == {
        "id": "item-2", "sku": "SKU-2", "price": "12.00", "compareAt": None, "currency": "EUR", "tags": ["sale"],
        "fields": {"shelf": "2"},
    }  # fmt: skip


def test_a_write_compares_with_expected_and_logs_each_value(shop: SimulatedShop) -> None:
    shop.fail()
    results = write(shop, change("item-7", "9.00", "17.0"), change("item-8", "9.00", "1.00"), change("nobody", "1.00"))
    shop.edit("item-7", "5.00")

    found = {"price": "18.00", "compareAt": None, "currency": "EUR"}
    assert results == [
        {"id": "item-7"}, {"id": "item-8", "error": {"code": 409, "found": found}},
        {"id": "nobody", "error": {"code": 404}},
    ]  # fmt: skip
    assert values(shop, "item-7") == [("17.00", "start"), ("9.00", "call"), ("5.00", "third party")]
    assert values(shop, "item-8") == [("18.00", "start")]
    assert shop.prices(["item-7"]) == {"item-7": "5.00"}


def test_a_repeated_key_gets_the_first_answer_and_writes_nothing(shop: SimulatedShop) -> None:
    shop.fail()
    assert write(shop, change("item-10", "1.00", "20.00"), key="k1") == [{"id": "item-10"}]
    shop.edit("item-10", "3.00")

    assert write(shop, change("item-10", "1.00", "20.00"), key="k1") == [{"id": "item-10"}]
    assert shop.prices(["item-10"]) == {"item-10": "3.00"}


@pytest.mark.parametrize(
    ("fault", "error", "is_written"),
    [
        ({"name": "rate_limited", "retry_after": "3"}, RateLimited, False),
        ({"name": "busy"}, Unavailable, False),
        ({"name": "error_before", "status": 502}, Unavailable, False),
        ({"name": "error_after"}, Unavailable, True),
        ({"name": "reset"}, Unavailable, False),
        ({"name": "lost_before"}, Unavailable, False),
        ({"name": "lost_after"}, Unavailable, True),
        ({"name": "late", "seconds": 0.05}, Unavailable, True),
        ({"name": "cut_off"}, Unavailable, True),
        ({"name": "unauthorized"}, Rejected, False),
        ({"name": "rejected", "status": 413}, Rejected, False),
        ({"name": "redirect"}, Rejected, False),
    ],
    ids=lambda given: given["name"] if isinstance(given, dict) else "",
)
def test_a_fault_happens_as_often_as_asked(
    shop: SimulatedShop, fault: dict[str, Any], error: type[Exception], is_written: bool
) -> None:
    shop.fail({**fault, "count": 1})
    before = shop.state()["values"]
    with pytest.raises(error):
        write(shop, change("item-100", "2.00"))
    while shop.state()["late"]:
        pass

    assert shop.state()["values"] - before == int(is_written)
    assert write(shop, change("item-100", "2.00")) == [{"id": "item-100"}]
    assert shop.happened() == {fault["name"]: 1}


def test_items_can_be_refused_edited_or_answered_wrongly(shop: SimulatedShop) -> None:
    changes = [change(f"item-{n}", "4.00", f"{10 + n % 90}.00") for n in range(201, 205)]
    shop.fail({"name": "refused", "items": ["item-201"]}, {"name": "edited", "items": ["item-202"]})
    results = {each["id"]: each.get("error", {}).get("code") for each in write(shop, *changes)}
    shop.fail({"name": "short", "count": 1})
    short = write(shop, *changes[2:])
    shop.fail({"name": "foreign", "count": 1})
    foreign = write(shop, *changes[2:])

    assert results == {"item-201": 422, "item-202": 409, "item-203": None, "item-204": None}
    assert values(shop, "item-202")[1:] == [("32.01", "third party")]
    assert [each["id"] for each in short] == ["item-203"]
    assert [each["id"] for each in foreign] == ["item-203", "nobody's"]


def test_answers_can_be_wrong(shop: SimulatedShop) -> None:
    def read() -> dict[str, Any]:
        answer = http.call("POST", f"{shop.url}/prices:read", json={"ids": ["item-9"]}).json()
        shown: dict[str, Any] = answer["prices"]["item-9"]
        return shown

    shop.fail({"name": "other_currency", "on": "read", "count": 1}, {"name": "number_price", "on": "read", "count": 1})
    assert (read()["currency"], read()["price"], read()["price"]) == ("USD", 19.0, "19.00")
    shop.fail({"name": "clock_off", "on": "health"})
    answer = http.call("GET", f"{shop.url}/health")
    assert answer.json() == {"ok": True, "compares": True, "detail": "250 items"}


def test_the_same_seed_chooses_the_same_calls() -> None:
    def drawn(seed: int) -> list[bool]:
        fault = Fault("reset", share=0.3, seed=seed)
        return [fault.happens("write") for _ in range(50)]

    assert drawn(7) == drawn(7) != drawn(8)
    assert 5 < sum(drawn(7)) < 25


def test_a_fault_is_read_from_the_command_line() -> None:
    fault = read_fault("rejected:status=413,items=item-1|item-2,count=2,seed=9")

    assert (fault.name, fault.status, fault.items, fault.count, fault.seed) == (
        "rejected", 413, ("item-1", "item-2"), 2, 9,
    )  # fmt: skip


@pytest.mark.parametrize("text", ["unheard", "reset:share=2", "reset:count=x", "reset:colour=red", "reset:share"])
def test_a_fault_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        read_fault(text)


def test_options_of_the_command_reach_the_shop(tmp_path: Path) -> None:
    options = ("--fault", "reset:count=1", "--no-compare", "--rate", "1", "--token", "open")
    with simulated_shop(tmp_path, *options, items=1) as running:
        sent = {"headers": {"Authorization": "Bearer open"}}
        with pytest.raises(Rejected):
            http.call("GET", f"{running.url}/health")
        health = http.call("GET", f"{running.url}/health", **sent).json()
        with pytest.raises(RateLimited) as limited:
            _ = [http.call("GET", f"{running.url}/health", **sent) for _ in range(5)]
        assert (health["compares"], limited.value.code, running.happened()) == (False, "THROTTLED", {"reset": 0})


def test_a_shop_whose_output_is_piped_names_its_address_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "holdfast", "sim", "shop", "--items", "1", "--port", "0"]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        [*command, "--log", str(tmp_path / "shop.jsonl")], stdout=subprocess.PIPE, text=True, env=buffered
    ) as process:
        hurry = threading.Timer(30, process.terminate)  # a line that is not flushed would never come
        hurry.start()
        try:
            assert process.stdout is not None
            assert "http://127.0.0.1:" in process.stdout.readline()
            assert not hurry.finished.is_set()
        finally:
            hurry.cancel()
            process.terminate()
