"""Starts of a flow for later: the first steps of its plan are due after a delay, or at a moment."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from holdfast.durations import Duration, duration
from holdfast.errors import BadInput
from holdfast.kernel.call import check_delay, check_due
from holdfast.models import Json


@dataclass(frozen=True, slots=True)
class Later:
    """When a run begins; a delay counts from the database's time."""

    delay: timedelta | None = None
    due_at: datetime | None = None

    def write(self, plan: Sequence[dict[str, Any]], now: Sequence[datetime]) -> Json | None:
        """Write the plan with its first steps due then; None if they are due at once."""
        due_at = self.due_at if self.delay is None else now[0] + self.delay
        if due_at is None:
            return None
        when = {"due_at": due_at.isoformat()}
        return Json(json.dumps([step if step["after"] else {**step, **when} for step in plan]))

    def check(self, key: str | None, skipped: Sequence[str]) -> None:
        """Refuse what cannot begin later; `skipped` are those of the first steps that are not to be done."""
        if self.delay is not None and key is not None:
            raise BadInput(
                f"delay is {self.delay} beside the key {key}, and each start would have another time",
                where="delay",
                next="use due_at with the same moment for each start",
            )
        if skipped and self != Later():
            raise BadInput(
                f"step {skipped[0]} is skipped and one of the first, so the steps after it would be due at once",
                where="skip",
                next="leave it out of skip, or leave out delay and due_at",
            )


def later(delay: Duration | None, due_at: datetime | None) -> Later:
    """Check `delay` and `due_at`."""
    check_due(due_at)
    waits = None if delay is None else duration(delay, "delay")
    check_delay(waits, due_at)
    return Later(waits, due_at)
