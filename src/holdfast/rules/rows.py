"""What the views of rules show: runs, targets and channels, as frozen rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from holdfast.rules.language.money import Price, decimal


@dataclass(frozen=True, slots=True)
class RuleRunRow:
    """A rule run. `counts` has targets, included, applied, failed, left, unchanged, refused and rolledBack."""

    id: UUID
    tenant_id: str
    project_id: str | None
    rule_id: str
    rule_version: int
    channel: str
    source: str
    status: str
    metadata: dict[str, Any]
    plan_hash: str
    expires_at: datetime
    counts: dict[str, int]
    error: str | None
    reason: str | None
    created_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    parent_run_id: UUID | None
    plan: dict[str, Any]
    halt: str | None  # first, paused or stopped
    is_expired: bool  # whether the plan cannot be applied any more

    @property
    def sums(self) -> dict[str, Decimal]:
        """By how much the plan moves the sum of all prices, per currency."""
        return {
            currency: decimal(int(sum_["after"]) - int(sum_["before"]), currency)
            for currency, sum_ in self.plan["sums"].items()
        }

    @property
    def largest_percent(self) -> Decimal | None:
        """The largest move of the plan, in percent."""
        moves = [Decimal(str(move["percent"])) for way in ("down", "up") for move in self.plan["largest"][way][:1]]
        return max(moves, key=abs, default=None)

    @property
    def unmatched(self) -> dict[str, Any]:
        """How many skus of a list of prices match no item, and the first of them."""
        return dict(self.plan.get("unmatched", {"skus": 0, "first": []}))

    @property
    def remark(self) -> str | None:
        """What its status does not say of it now: paused, stopping or expired."""
        match self.status:
            case "PREVIEW":
                return "expired" if self.is_expired else None
            case "QUEUED" | "APPLYING" if self.halt is not None:
                return {"first": "paused after its first targets", "stopped": "stopping"}.get(self.halt, self.halt)
            case _:
                return None

    @property
    def actions(self) -> list[str]:
        """What can be done with it now."""
        failed, left = self.counts["failed"], self.counts["left"]
        match self.status:
            case "PREVIEW":
                return [] if self.is_expired else ["apply"]
            case "QUEUED" | "APPLYING":
                return [] if self.halt == "stopped" else ["pause" if self.halt is None else "resume", "stop"]
            case "PARTIAL" | "FAILED":
                retries = [*(["retry_failed"] if failed else []), *(["retry_all"] if failed or left else [])]
                return [*retries, *(["rollback", "reconcile"] if self.status == "PARTIAL" else [])]
            case "APPLIED":
                return ["rollback", "reconcile"] if self.counts["applied"] else []
            case _:
                return []


@dataclass(frozen=True, slots=True)
class TargetRow:
    """A target of a rule run."""

    id: int
    rule_run_id: UUID
    item_id: str
    included: bool
    status: str
    attempts: int
    apply_seq: int
    before_json: dict[str, Any]
    after_json: dict[str, Any]
    found_json: dict[str, Any] | None
    reason: str | None
    error: str | None
    error_class: str | None
    retryable: bool | None
    applied_at: datetime | None
    last_attempt_at: datetime | None
    next_due_at: datetime | None
    resolved_at: datetime | None
    writes_price: bool
    writes_compare_at: bool
    later_run_id: UUID | None  # the run of ours whose price a rollback found

    @property
    def before(self) -> Price:
        """The price that the preview saw."""
        return _price(self.before_json)

    @property
    def after(self) -> Price:
        """The new price."""
        return _price(self.after_json)


@dataclass(frozen=True, slots=True)
class StateRow:
    """A state of a run or target: what it means to the kernel, and how a row in it has ended."""

    state: str
    phase: str | None
    outcome: str | None


@dataclass(frozen=True, slots=True)
class RefusalRow:
    """An item that was refused."""

    id: int
    item_id: str | None
    reason: str
    message: str
    currency: str | None
    price_before: int | None
    price_after: int | None


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """A channel that a worker registered."""

    channel: str
    tenant_id: str
    kind: str
    about: dict[str, Any]
    batch: int
    request_timeout: timedelta
    target_timeout: timedelta
    queue: str
    open_runs: int


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A rule as it is defined now."""

    rule_id: str
    tenant_id: str
    version: int
    definition: dict[str, Any]
    defined_at: datetime
    defined_by: str


@dataclass(frozen=True, slots=True)
class LaterChange:
    """The newest change of an item, by another run than the one that is rolled back."""

    item_id: str
    run_id: UUID
    unit_amount: int
    at: datetime


@dataclass(frozen=True, slots=True)
class PlannedTime:
    """When the clock applies or undoes a run. Of an undo that has begun, `waits` says what is in its way."""

    what: str  # apply or revert
    schedule: str
    at: datetime
    state: str
    error: str | None  # why its tick failed
    waits: str | None
    waits_for: UUID | None


@dataclass(frozen=True, slots=True)
class Difference:
    """How a new plan differs from an older one of the same rule, by items."""

    added: int
    gone: int
    changed: int
    same: int


def _price(form: dict[str, Any]) -> Price:
    return Price(form["unit_amount"], form["compare_at"], form["currency"])
