"""A run as its handler receives it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class OpsRun:
    """What a run was queued with. A run that was queued without a sha or ref has empty ones."""

    run_id: str
    project_id: str
    env: str
    env_id: str
    git_sha: str = ""
    git_ref: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    kind: str = ""
    queued_by: str | None = None
    retry_of: str | None = None  # the run that it repeats
    rollback_of: str | None = None  # the run that it undoes
    expires_at: datetime | None = None  # it is not executed if it was claimed later

    def environment(self) -> dict[str, str]:
        """Return the variables that tell programs about the run."""
        return {
            "HOLDFAST_RUN_ID": self.run_id,
            "HOLDFAST_KIND": self.kind,
            "HOLDFAST_PROJECT": self.project_id,
            "HOLDFAST_ENV": self.env,
            "HOLDFAST_ENV_ID": self.env_id,
            "HOLDFAST_GIT_SHA": self.git_sha,
            "HOLDFAST_GIT_REF": self.git_ref,
        }
