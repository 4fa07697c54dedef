"""One Python function per SQL function of `rules` that passes of reconciliation use; each returns a Call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from holdfast.kernel.call import Call


@dataclass(frozen=True, slots=True)
class PlannedPass:
    """A pass as it was planned: its own run, and its number among those of the run that it checks."""

    pass_id: UUID
    no: int


@dataclass(frozen=True, slots=True)
class CheckedTarget:
    """A target that a pass looks at. `standing`: check, superseded or unknown."""

    target_id: int
    item_id: str
    currency: str
    price_before: int
    compare_at_before: int | None
    expected: int
    expected_compare_at: int | None
    writes_price: bool
    writes_compare_at: bool
    standing: str


@dataclass(frozen=True, slots=True)
class FoundMismatch:
    """A price that differs from what was written, with the rule that wrote it."""

    item_id: str
    currency: str
    actual: int | None
    actual_compare_at: int | None
    expected: int
    expected_compare_at: int | None
    rule: dict[str, Any]


def reconcile(
    run_id: UUID, *, correct: bool = False, reason: str | None = None, actor: str | None = None
) -> Call[PlannedPass]:
    """Plan a pass over a run, due now."""
    arguments = {"run_id": run_id, "correct": correct, "reason": reason, "actor": actor}
    return Call("reconcile", PlannedPass, arguments, schema="rules")


def page_targets(step_id: int, lease_id: int, most: int) -> Call[CheckedTarget]:
    """Return the next targets that a step of a pass checks."""
    arguments = {"step_id": step_id, "lease_id": lease_id, "most": most}
    return Call("page_targets", CheckedTarget, arguments, schema="rules", is_read=True)


def pass_mismatches(step_id: int, lease_id: int, *, most: int = 101) -> Call[FoundMismatch]:
    """Return what a pass found, for the step that corrects it."""
    arguments = {"step_id": step_id, "lease_id": lease_id, "most": most}
    return Call("pass_mismatches", FoundMismatch, arguments, schema="rules", is_read=True)
