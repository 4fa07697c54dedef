"""Schedules of ops runs: what a tick queues."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from holdfast.errors import BadDefinition
from holdfast.handlers.registry import check_name
from holdfast.kernel.call import check_priority
from holdfast.kernel.schedule_calls import Target
from holdfast.models import Json


@dataclass(frozen=True, slots=True)
class ScheduledRuns:
    """One run of a kind per environment, of all of them or of those that are named."""

    kind: str
    project: str | None
    env: str | None
    git_sha: str | None
    git_ref: str | None
    metadata: Mapping[str, Any]
    priority: int
    ttl: timedelta | None

    def scheduled(self, _input: Any) -> Target:
        """Check it, and return what the schedule is to start."""
        names = {"kind": self.kind, "project": self.project, "env": self.env, "git_ref": self.git_ref}
        for what, name in names.items():
            if name is not None:
                check_name(what, name)
        check_priority(self.priority)
        given = {"project_id": self.project, "env": self.env, "git_sha": self.git_sha, "git_ref": self.git_ref}
        written = {name: value for name, value in given.items() if value is not None}
        options: dict[str, Any] = {} if not self.priority else {"priority": self.priority}
        if self.ttl is not None:
            options["ttl"] = f"{self.ttl.total_seconds()} s"
        try:
            document = Json(json.dumps({**written, "metadata": dict(self.metadata)}, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise BadDefinition(
                f"the metadata of a schedule must be JSON: {error}", where="metadata", next="use text and numbers"
            ) from None
        return Target("ops", self.kind, document, options, "default")
