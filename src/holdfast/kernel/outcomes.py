"""Outcomes in the JSON form of settle_steps."""

from __future__ import annotations

import json
from typing import Any, assert_never

from holdfast.durations import Duration, wait
from holdfast.models import Continue, Done, Fail, Json, Release, Retry, Settlement, Snooze


def as_json(settlement: Settlement) -> dict[str, Any]:
    """Return a settlement in the JSON form of settle_steps."""
    head = {"step_id": settlement.step_id, "lease_id": settlement.lease_id}
    match settlement.outcome:
        case Done(result):
            return {**head, "outcome": "done", "result": json.loads(result) if isinstance(result, Json) else result}
        case Retry(error, after, pause):
            return {**head, "outcome": "retry", "error": error, "retry_after": _interval(after), **_pause(pause)}
        case Fail(error):
            return {**head, "outcome": "fail", "error": error}
        case Snooze(after, pause):
            return {**head, "outcome": "snooze", "retry_after": _interval(after), **_pause(pause)}
        case Continue(cursor, was):
            return {**head, "outcome": "continue", "cursor": cursor, "cursor_was": was}
        case Release(is_tried):
            return {**head, "outcome": "release", "is_tried": is_tried}
        case outcome:
            assert_never(outcome)


def _pause(limit: str | None) -> dict[str, str]:
    return {} if limit is None else {"pause": limit}


def _interval(after: Duration | None) -> str | None:
    """Return a delay as an interval; the policy has its own, shorter limits."""
    return None if after is None else f"{wait(after, 'after').total_seconds()} s"
