"""What errors of a channel mean: a table by status and code, which a channel may change."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.errors import BadDefinition, OutsideError, RateLimited, Rejected, Unavailable
from holdfast.models import Retry
from holdfast.rules.channel import Registered, Wrote
from holdfast.rules.http import HttpChannel
from holdfast.rules.outcomes import Target, outcome_of, settled_by_reading, target_of
from holdfast.rules.treatment import STANDARD, Treatment, of_error, of_item, table_of

GIVEN: dict[str, Any] = {
    "item_id": "A", "currency": "EUR", "price_before": 100, "price_after": 50, "compare_at_before": None,
    "compare_at_after": None, "writes_price": True, "writes_compare_at": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("error", "error_class"),
    [
        *((Unavailable("x", status=status), "SERVER_ERROR") for status in (500, 502, 503, 504, 599, 425)),
        (Unavailable("x", status=408), "TIMEOUT"),
        (Unavailable("x", code="TIMEOUT"), "TIMEOUT"),
        (Unavailable("x", code="NETWORK"), "NETWORK"),
        (Unavailable("x", code="UNREADABLE"), "UNKNOWN"),
        (Unavailable("x"), "SERVER_ERROR"),
        (RateLimited("x", status=429), "RATE_LIMIT"),
        (RateLimited("x", code="THROTTLED"), "RATE_LIMIT"),
        (Rejected("x", code="429"), "RATE_LIMIT"),
        (Rejected("x", status=400, code="THROTTLED"), "RATE_LIMIT"),
    ],
    ids=str,
)
def test_what_passes_is_retried(error: OutsideError, error_class: str) -> None:
    """A-54, A-57, A-125, C-03: only 429 and THROTTLED are rate limits; a 500 and a 503 are not."""
    assert of_error(STANDARD, error) == Treatment(error_class, retries=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "treatment"),
    [
        *((Rejected("x", status=status), Treatment("VALIDATION", splits=True)) for status in (400, 413, 422)),
        *((Rejected("x", status=status), Treatment("AUTHORIZATION", stops=True)) for status in (401, 403)),
        (Rejected("x", status=404), Treatment("NOT_FOUND")),
        (Rejected("x", status=418), Treatment("VALIDATION")),
        (Rejected("x", status=302), Treatment("VALIDATION", stops=True)),
        (Rejected("x", code="CONFIGURATION"), Treatment("VALIDATION", stops=True)),
        (Rejected("x", code="42P01"), Treatment("VALIDATION", stops=True)),
        (Rejected("x"), Treatment("VALIDATION")),
    ],
    ids=str,
)
def test_what_stays_is_not_retried(error: OutsideError, treatment: Treatment) -> None:
    """A-62, A-125, C-87: authorization and settings stop the run, and a refused call is split."""
    assert of_error(STANDARD, error) == treatment


def test_the_flag_of_an_error_wins() -> None:
    """Over what its status means, in both directions."""
    assert of_error(STANDARD, Unavailable("x", status=500, retryable=False)) == Treatment("SERVER_ERROR")
    assert of_error(STANDARD, Rejected("x", status=401, retryable=True)) == Treatment("AUTHORIZATION", retries=True)
    assert of_item(STANDARD, Wrote("failed", code="422", retryable=True)).retries
    assert not of_item(STANDARD, Wrote("failed", code="503", retryable=False)).retries


def test_a_channel_changes_the_table() -> None:
    """A-125: classes are configurable per channel."""
    table = table_of({423: Treatment("SERVER_ERROR", retries=True), "LOCKED": Treatment("AUTHORIZATION", stops=True)})

    assert of_error(table, Rejected("x", status=423)).retries
    assert of_error(table, Rejected("x", status=409, code="LOCKED")).stops
    assert of_item(table, Wrote("failed", code="423")).error_class == "SERVER_ERROR"
    assert of_error(table, Rejected("x", status=401)).stops
    assert not of_error(STANDARD, Rejected("x", status=423)).retries


@pytest.mark.parametrize(
    "errors",
    [{True: Treatment("UNKNOWN")}, {500: "SERVER_ERROR"}, {500: Treatment("NONSENSE")},
     {500: Treatment("UNKNOWN", retries=True, stops=True)}],
)  # fmt: skip
def test_a_table_that_makes_no_sense_is_refused(errors: dict[Any, Any]) -> None:
    hf = Holdfast("dbname=nothing")
    with pytest.raises(BadDefinition) as refused:
        hf.rules.channel("shop", HttpChannel("https://shop.example"), errors=errors)
    assert refused.value.where == "errors"


def test_an_item_that_is_throttled_is_a_rate_limit_of_its_target() -> None:
    """The ordinal counts the target's rate limits in a row, and the limit of the channel is closed."""
    known = Registered("s", HttpChannel("https://shop.example"), 10, None, None, STANDARD)  # type: ignore[arg-type]
    target = target_of({**GIVEN, "rate_limits": 2, "is_unknown": True, "tries_left": 2, "retries": 1})
    outcome = outcome_of(known, target, Wrote("failed", code="THROTTLED"))

    assert isinstance(target, Target)
    assert (outcome.pause, outcome.policy, outcome.ordinal, outcome.of_call) == ("rules:s", "rules.429", 3, True)  # type: ignore[union-attr]
    assert outcome.error["unknown"] is True  # type: ignore[union-attr]


def test_a_retry_that_was_read_keeps_its_policy() -> None:
    """What the last read says of a target changes what is known of it, and nothing else"""
    error = {"class": "RATE_LIMIT", "unknown": True, "rate_limits": 2}
    retry = Retry(error, 5, "rules:shop", policy="rules.429", ordinal=2, is_charged=False, of_call=True)

    settled = settled_by_reading(retry, None)

    assert isinstance(settled, Retry)
    assert settled.error == {"class": "RATE_LIMIT", "rate_limits": 2}
    assert (settled.after, settled.pause, settled.policy, settled.ordinal, settled.is_charged, settled.of_call) == (
        5, "rules:shop", "rules.429", 2, False, True)  # fmt: skip
