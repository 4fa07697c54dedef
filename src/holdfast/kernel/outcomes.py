"""Outcomes in the JSON form of settle_steps."""

from __future__ import annotations

import json
from typing import Any, assert_never

from holdfast.durations import Duration, wait
from holdfast.kernel.call import problem
from holdfast.models import Continue, Done, Fail, Json, Release, Retry, Settlement, Snooze

MOST_FAILURES = 999_999
LONGEST_KEY = 400


def as_json(settlement: Settlement) -> dict[str, Any]:
    """Return a settlement in the JSON form of settle_steps."""
    head: dict[str, Any] = {"step_id": settlement.step_id, "lease_id": settlement.lease_id}
    if settlement.alone:
        head["alone"] = True
    if settlement.raised_with is not None:
        head["raised_with"] = settlement.raised_with
    match settlement.outcome:
        case Done(result):
            return {**head, "outcome": "done", "result": json.loads(result) if isinstance(result, Json) else result}
        case Retry(error, after, pause) as retry:
            more = {"policy": retry.policy, "ordinal": retry.ordinal, "is_charged": None if retry.is_charged else False}
            return {**head, "outcome": "retry", "error": error, "retry_after": _interval(after),
                    **_given(pause=pause, **more)}  # fmt: skip
        case Fail(error):
            return {**head, "outcome": "fail", "error": error}
        case Snooze(after, pause) as snooze:
            more = {"pause": pause, "call_key": snooze.call_key}
            return {**head, "outcome": "snooze", "retry_after": _interval(after), **_given(**more)}
        case Continue(cursor, was):
            return {**head, "outcome": "continue", "cursor": cursor, "cursor_was": was}
        case Release(is_tried):
            return {**head, "outcome": "release", "is_tried": is_tried}
        case outcome:
            assert_never(outcome)


def check_retry(retry: Retry) -> None:
    """Raise ValueError for a retry that the database would reject together with its whole batch."""
    if retry.policy is not None and problem("policy", retry.policy):
        raise ValueError(f"policy must be the name of one, got {retry.policy!r}")
    if retry.ordinal is not None and (isinstance(retry.ordinal, bool) or not 1 <= retry.ordinal <= MOST_FAILURES):
        raise ValueError(f"ordinal must be 1 to {MOST_FAILURES}, got {retry.ordinal!r}")


def check_snooze(snooze: Snooze) -> None:
    """Raise ValueError for a snooze that the database would reject together with its whole batch."""
    if snooze.call_key is not None and len(snooze.call_key) > LONGEST_KEY:
        raise ValueError(f"call_key must be text of up to {LONGEST_KEY} characters, got {snooze.call_key!r:.60}")


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _interval(after: Duration | None) -> str | None:
    """Return a delay as an interval; the policy has its own, shorter limits."""
    return None if after is None else f"{wait(after, 'after').total_seconds()} s"
