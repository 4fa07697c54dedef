"""Delayed starts of a flow: the first steps of its plan are due after a delay or at a time."""

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
    """When a run begins; a delay counts by the database's clock."""

    delay: timedelta | None = None
    due_at: datetime | None = None

    def write(self, plan: Sequence[dict[str, Any]], now: Sequence[datetime]) -> Json | None:
        """Return the plan with its first steps due then; None if they are due at once."""
        due_at = self.due_at if self.delay is None else now[0] + self.delay
        if due_at is None:
            return None
        when = {"due_at": due_at.isoformat()}
        return Json(json.dumps([step if step["after"] else {**step, **when} for step in plan]))

    def check(self, key: str | None, skipped: Sequence[str]) -> None:
        """Raise for a start that cannot be delayed; `skipped` lists those of the first steps to skip."""
        if self.delay is not None and key is not None:
            raise BadInput(
                f"delay {self.delay} cannot be combined with the key {key}, as each start would have another time",
                where="delay",
                next="use due_at with the same time for each start",
            )
        if skipped and self != Later():
            raise BadInput(
                f"step {skipped[0]} is a first step and is skipped, so the steps after it would be due at once",
                where="skip",
                next="remove it from skip, or remove delay and due_at",
            )


def later(delay: Duration | None, due_at: datetime | None) -> Later:
    """Check `delay` and `due_at`."""
    check_due(due_at)
    waits = None if delay is None else duration(delay, "delay")
    check_delay(waits, due_at)
    return Later(waits, due_at)
