"""The SQL functions of retention as Python values, like those of `calls`, and the rows that they return."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from holdfast.errors import Pruned
from holdfast.kernel.call import Call
from holdfast.models import RunOutcome

What = Literal["runs", "journal", "ticks"]


@dataclass(frozen=True, slots=True)
class Sweep:
    """What one chunk removed; `is_through` is None while another session sweeps."""

    steps: int
    runs: int
    keys: int
    ticks: int
    months: int  # of the journal, that are to be dropped
    is_through: bool | None
    wait: timedelta  # until the next chunk, or the next sweep


@dataclass(frozen=True, slots=True)
class Removal:
    """A task or run that is gone, by its last move; `pruned_at` is None if it was not retention that removed it."""

    id: str
    label: str
    machine: str
    state: str
    outcome: RunOutcome | None
    finished_at: datetime
    run_id: UUID | None
    pruned_at: datetime | None
    rule: str | None

    def error(self, known_as: str | None = None) -> Pruned:
        """Return the error for whoever asks for it; a face that has ids of its own passes the one that users know."""
        shown = known_as or self.id
        by = "" if self.rule is None else f', and the rule "{self.rule}" removed it'
        return Pruned(
            f"{self.label} {shown} was pruned: it ended as {self.outcome or self.state} "
            f"at {self.finished_at:%Y-%m-%d %H:%M:%S%z}{by}",
            where=shown,
            next=f"see its history with `holdfast runs show {self.id}`, and the rules with `holdfast retention show`",
            outcome=self.outcome,
            finished_at=self.finished_at,
            pruned_at=self.pruned_at,
            rule=self.rule,
        )


@dataclass(frozen=True, slots=True)
class Prunable:
    """What a sweep would remove by one rule; `is_all` is False if there may be more."""

    what: Literal["tasks", "runs", "keys", "months", "ticks"]
    rule: str
    rows: int | None
    steps: int | None
    is_all: bool


def sweep(*, batch: int = 1000) -> Call[Sweep]:
    """Remove one chunk of what its rules no longer keep, if a sweep is due."""
    return Call("sweep", Sweep, {"batch": batch})


def sweep_now(*, batch: int = 1000, afresh: bool = False) -> Call[Sweep]:
    """Remove one chunk now; `afresh` begins again at the first row."""
    return Call("sweep_now", Sweep, {"batch": batch, "afresh": afresh})


def drop_month() -> Call[str | None]:
    """Drop the oldest month of the journal or the notes; None if there is none or it is in use."""
    return Call("drop_month", str, {})


def pruned(of_id: str) -> Call[Removal]:
    """Read what became of a task or run that is gone."""
    return Call("pruned", Removal, {"of_id": of_id}, is_read=True)


def prunable(*, most: int = 1_000_000) -> Call[Prunable]:
    """Count what a sweep would remove now, among the oldest `most` tasks and runs."""
    return Call("prunable", Prunable, {"most": most}, is_read=True)


def set_retention(
    keep: timedelta | str | None,
    *,
    outcome: str | None = None,
    machine: str | None = None,
    queue: str | None = None,
    tenant: str | None = None,
    what: What = "runs",
    reason: str | None = None,
    actor: str | None = None,
) -> Call[None]:
    """Set how long finished tasks and runs are kept; None: forever. Only `keep` as text has months, which vary."""
    subject = {"outcome": outcome, "machine": machine, "queue": queue, "tenant": tenant, "what": what}
    return Call("set_retention", type(None), {"keep": keep, **subject, "reason": reason, "actor": actor})


def forget_retention(
    *,
    outcome: str | None = None,
    machine: str | None = None,
    queue: str | None = None,
    tenant: str | None = None,
    what: What = "runs",
    reason: str | None = None,
    actor: str | None = None,
) -> Call[bool]:
    """Remove a rule, so that less specific ones or defaults apply; return false if there was none."""
    subject = {"outcome": outcome, "machine": machine, "queue": queue, "tenant": tenant, "what": what}
    return Call("forget_retention", bool, {**subject, "reason": reason, "actor": actor})
