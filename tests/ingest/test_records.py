"""Bad input in a page: what cannot be stored is rejected with its reason, and the rest of the page goes on."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from holdfast.ingest import Rows
from holdfast.ingest.plan import rounded_down
from holdfast.ingest.pricing import Pricing, Rule
from holdfast.ingest.records import BadPage, read_page, read_records
from holdfast.ingest.source import Page, Reader
from kernel.steps import seconds


def reader(**options: Any) -> Reader:
    return Reader(Rows([], key="id", **options), "orders")


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({"name": "x"}, "no key"),
        ({"id": None}, "no key"),
        ({"id": ""}, "no key"),
        ({"id": "k" * 1025}, "1025 bytes"),
        ({"id": "a\x00b"}, "NUL"),
        ({"id": 1, "name": "a\x00b"}, "NUL"),
        ({"id": 1, "name": "\ud800"}, "surrogate"),
        ({"id": 1, "price": float("1e400")}, "number"),
        ({"id": 1, "price": float("nan")}, "number"),
        ({"id": 1, "text": "x" * 1_048_577}, "bytes"),
        ({"id": 1, "what": object()}, "object"),
    ],
)
def test_a_record_that_cannot_be_stored_is_rejected_alone(record: dict[str, Any], why: str) -> None:
    """C-80"""
    stored = read_records(reader(), [{"id": 7}, record, {"id": 8}])

    assert stored.keys == ["7", "8"]
    ((_, shown, reason),) = stored.rejected
    assert why in reason
    shown.encode()
    assert "\x00" not in shown


def test_numbers_keep_every_digit() -> None:
    stored = read_records(reader(), [{"id": 1, "price": Decimal("12345678901234567890.0100")}])

    assert stored.payloads == ['{"id": 1, "price": 12345678901234567890.0100}']


@pytest.mark.parametrize("answer", ["text", 7, None, {"records": []}, Page("text"), iter([])])
def test_a_page_that_is_not_a_list_is_refused(answer: Any) -> None:
    with pytest.raises(BadPage):
        read_page(answer)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(BadPage) as caught:
        read_records(reader(updated_at="at"), [{"id": 1, "at": datetime(2024, 1, 1)}])  # noqa: DTZ001
    assert caught.value.where == "updated_at"


def test_a_bound_is_rounded_down_to_the_sources_precision() -> None:
    """C-21"""
    at = datetime(2024, 1, 16, 2, 0, 59, 999_999, tzinfo=UTC)

    assert rounded_down(at, seconds(1)) == datetime(2024, 1, 16, 2, 0, 59, tzinfo=UTC)
    assert rounded_down(at, seconds(60)) == datetime(2024, 1, 16, 2, 0, tzinfo=UTC)
    assert rounded_down(at, seconds(0.000001)) == at


def test_the_first_rule_that_fits_sets_the_price_exactly() -> None:
    """P-25, P-149: the lower priority wins; half a cent is rounded up; no float artefacts"""
    rules = [
        Rule(1, {"shape": ["round", "oval"], "carat": {"min": Decimal(1), "max": Decimal(2)}}, Decimal("1.2"), "A"),
        Rule(2, {"shape": ["round"]}, Decimal("1.10"), None),
    ]
    price = Pricing("cents", default="1.15", rating="rating")

    def priced(**values: Any) -> tuple[Any, Any]:
        made = price.applied(values, rules)
        return made["cents"], made["rating"]

    assert priced(cents=1005, shape="round", carat=Decimal("1.5")) == (1206, "A")
    assert priced(cents=1005, shape="round", carat=Decimal("0.5")) == (1106, None)  # 1105.5
    assert priced(cents=1010, shape="pear", carat=None) == (1162, None)  # 1161.5
    assert priced(cents=Decimal("10.01"), shape="pear", carat=None) == (Decimal("11.5115"), None)
    with pytest.raises(ValueError, match="float"):
        priced(cents=10.01, shape="pear", carat=None)
