"""Durations: one parser for arguments, settings, options and documents."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from holdfast import Holdfast, Retry, RetryPolicy, Snooze
from holdfast.config import Config
from holdfast.durations import LONGEST, PATTERN, duration, wait
from holdfast.errors import BadDefinition, BadInput
from holdfast.flow.backoff import Backoff, ReenqueueDelays

UNITS = {"w": 7 * 86400, "d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (30, 30), (0.25, 0.25), (0, 0), (timedelta(minutes=5), 300), ("30", 30), ("0.5", 0.5), ("200ms", 0.2),
        ("10s", 10), ("5m", 300), ("5min", 300), ("1h30m", 5400), ("1h 30m", 5400), ("2d", 172800), ("1w", 604800),
        ("1.5h", 5400), (" 90 s ", 90), ("1m500ms", 60.5),
    ],
)  # fmt: skip
def test_a_duration_is_read_in_every_form(given: Any, seconds: float) -> None:
    assert duration(given, "timeout") == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "given",
    [
        "", "soon", "-1s", "1 fortnight", "1e3", "PT5M", "5m1h", "1h1h", "1h30", "h", "٣s", "0x10", "1.s", -1, -0.1,
        timedelta(seconds=-1), float("nan"), float("inf"), float("-inf"), 1e300, 10**50, "99999999d", timedelta.max,
        True, False, None, b"5m", [5], object,
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_duration_is_refused_with_its_field_and_a_correct_value(given: Any) -> None:
    with pytest.raises(BadInput) as refused:
        duration(given, "timeout")

    assert refused.value.where == "timeout"
    assert repr(given) in refused.value.what
    assert "1h30m" in str(refused.value.next)


@given(some.dictionaries(some.sampled_from(sorted(UNITS)), some.integers(0, 99), min_size=1), some.booleans())
def test_text_is_the_sum_of_its_parts_in_descending_units(parts: dict[str, int], is_descending: bool) -> None:
    ordered = sorted(parts, key=lambda unit: UNITS[unit], reverse=is_descending)
    text = "".join(f"{parts[unit]}{unit}" for unit in ordered)
    if len(parts) > 1 and not is_descending:
        with pytest.raises(BadInput):
            duration(text, "timeout")
    else:
        assert duration(text, "timeout") == timedelta(seconds=sum(parts[unit] * UNITS[unit] for unit in parts))


@given(some.text(alphabet="0123456789.wdhms -e\n", max_size=8))
def test_the_pattern_for_editors_admits_all_that_is_read(text: str) -> None:
    try:
        duration(text, "timeout")
    except BadInput:
        return
    assert re.search(PATTERN, text)


def test_a_wait_for_a_moment_that_has_passed_is_none_and_a_long_one_is_bounded() -> None:
    """C-04: a server's answer, or a handler's own sum, may name either."""
    assert wait(-5, "after") == wait(timedelta(seconds=-5), "after") == timedelta(0)
    assert wait(timedelta.max, "after") == LONGEST
    assert wait("5m", "after") == timedelta(minutes=5)


def test_definitions_and_settings_take_any_form() -> None:
    policy = RetryPolicy(base=10, longest="1h30m", waits=[5, "1m", timedelta(minutes=2)])
    assert (policy.base, policy.longest) == (timedelta(seconds=10), timedelta(minutes=90))
    assert policy.waits == (timedelta(seconds=5), timedelta(minutes=1), timedelta(minutes=2))

    backoff = Backoff(
        default_backoff_seconds=["1s", 2, timedelta(seconds=4)],
        max_backoff_seconds="5m",
        reenqueue_delays=ReenqueueDelays(processing="200ms"),
    )
    assert (backoff.default_backoff_seconds, backoff.max_backoff_seconds) == ((1, 2, 4), 300)
    assert backoff.reenqueue_delays.processing == 0.2

    hf = Holdfast("postgresql://nowhere")
    task = hf.task(timeout="30s", lease="5m")(nothing)
    step = hf.flow("order").step(timeout="30s", lease="5m")(nothing)
    for handler in (task.handler, step.handler):
        assert (handler.timeout, handler.lease) == (timedelta(seconds=30), timedelta(minutes=5))

    assert Config(lease="1h30m").lease == Config(lease=5400).lease == timedelta(minutes=90)


BAD = {
    "timeout": lambda: Holdfast("postgresql://nowhere").task(timeout="soon")(nothing),
    "lease": lambda: Holdfast("postgresql://nowhere").flow("order").step(lease=True)(nothing),
    "base": lambda: RetryPolicy(base="soon"),
    "longest": lambda: RetryPolicy(longest=-1),
    "waits": lambda: RetryPolicy(waits="5s"),
    "waits[1]": lambda: RetryPolicy(waits=[1, float("nan")]),
    "max_backoff_seconds": lambda: Backoff(max_backoff_seconds="soon"),
    "default_backoff_seconds[0]": lambda: Backoff(default_backoff_seconds=["soon"]),
    "reenqueue_delays.processing": lambda: ReenqueueDelays(processing="soon"),
}


@pytest.mark.parametrize("field", BAD)
def test_a_definition_with_a_bad_duration_names_the_field(field: str) -> None:
    with pytest.raises(BadDefinition) as refused:
        BAD[field]()

    assert refused.value.where == field


@pytest.mark.parametrize("after", ["soon", float("nan"), True, 1e300])
def test_an_outcome_with_a_bad_wait_is_refused_where_it_is_made(after: Any) -> None:
    for make in (lambda: Retry("busy", after=after), lambda: Snooze(after=after)):
        with pytest.raises(BadInput) as refused:
            make()
        assert refused.value.where == "after"


def nothing() -> None: ...
