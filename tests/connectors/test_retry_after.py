"""Retry-After in both of its forms, and all that is neither."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.connectors.retry_after import LONGEST, retry_after

NOON = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("0", 0), ("007", 7), (" 120 ", 120), ("1.5", 1.5), ("4000", 4000), ("0.25\t", 0.25)],
)
def test_seconds_are_read(text: str, seconds: float) -> None:
    """T-112, C-04: the cap is the policy's"""
    assert retry_after(text, NOON) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        "Mon, 16 Nov 2026 12:00:45 GMT",
        "Monday, 16-Nov-26 12:00:45 GMT",
        "Mon Nov 16 12:00:45 2026",
        "Mon, 16 Nov 2026 13:00:45 +0100",
        "  Mon, 16 Nov 2026 12:00:45 GMT ",
    ],
)
def test_a_date_is_read_in_each_of_its_forms(text: str) -> None:
    """T-112: a date 45 s ahead is 45"""
    assert retry_after(text, NOON) == timedelta(seconds=45)


def test_a_date_counts_from_now_in_any_zone() -> None:
    """T-112"""
    there = NOON.astimezone(timezone(timedelta(hours=-5)))

    assert retry_after(format_datetime(NOON + timedelta(hours=1), usegmt=True), there) == timedelta(hours=1)
    assert retry_after(format_datetime(NOON, usegmt=True), there) == timedelta(0)


@pytest.mark.parametrize(
    "text",
    [
        None, "", "  ", "-1", "-0.5", "+5", "1e3", "0x10", "1_000", "1,5", ".5", "5.", "nan", "inf", "١٢", "30s",
        "30 60", "soon", "tomorrow", "Mon", "Mon, 16 Nov 2026", "Mon, 99 Nov 2026 12:00:45 GMT",
        "Mon, 16 Nov 2026 25:61:61 GMT",
        "Mon, 16 Nov 2026 11:59:59 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", "2026-11-16T12:00:45Z", "\x00", "30\x00",
    ],
)  # fmt: skip
def test_what_is_malformed_negative_or_empty_counts_as_absent(text: str | None) -> None:
    """C-04"""
    assert retry_after(text, NOON) is None


@pytest.mark.parametrize("text", ["9" * 20, "9" * 4000, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_what_is_absurdly_long_is_a_century(text: str) -> None:
    """C-04: and no overflow"""
    assert retry_after(text, NOON) == LONGEST


@given(st.text())
def test_no_text_breaks_it(text: str) -> None:
    """C-04"""
    found = retry_after(text, NOON)

    assert found is None or timedelta(0) <= found <= LONGEST
