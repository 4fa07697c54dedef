"""Outcomes that are exceptions too behave as exceptions do: they can be hashed, and print what they mean."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast import Continue, Fail, Retry, Snooze


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Retry(), ["retry", "policy"]),
        (Retry(after=5), ["retry", "5 s"]),
        (Retry("busy", after=timedelta(minutes=2)), ["retry", "0:02:00", "busy"]),
        (Retry(ConnectionError("away")), ["retry", "ConnectionError: away"]),
        (Fail(), ["fail"]),
        (Fail({"type": "Greedy", "message": "one each"}), ["fail", "one each"]),
        (Snooze(after="1h30m"), ["snooze", "1h30m"]),
        (Continue({"page": 2}), ["continue", "{'page': 2}"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_outcome_prints_what_it_means(outcome: Exception, words: list[str]) -> None:
    assert [word for word in words if word not in str(outcome)] == []


@pytest.mark.parametrize("outcome", [Retry({"a": 1}), Fail({"a": 1}), Snooze(1), Continue({"page": [2]})], ids=repr)
def test_an_outcome_is_hashable_and_the_same_only_as_itself(outcome: Any) -> None:
    assert outcome in {outcome}
    assert outcome != type(outcome)(**vars(outcome))
