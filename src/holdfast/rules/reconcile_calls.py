"""One Python function per SQL function of `rules` that passes of reconciliation use; each returns a Call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from holdfast.kernel.call import Call


@dataclass(frozen=True, slots=True)
class PlannedPass:
    """A pass as it was planned: its own run, and its number among those of the run that it checks."""

    pass_id: UUID
    no: int


class CheckedTarget(NamedTuple):  # a tuple: a pass makes one per target
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


def turn_page(
    step_id: int, lease_id: int, upto: int, *, checked: int, superseded: int, findings: list[dict[str, Any]], most: int
) -> Call[CheckedTarget]:
    """Store what was found on a page, and return the next targets; none if another claim is to read them."""
    arguments = {"step_id": step_id, "lease_id": lease_id, "upto": upto, "checked": checked, "superseded": superseded,
                 "findings": Jsonb(findings), "most": most}  # fmt: skip
    return Call("turn_page", CheckedTarget, arguments, schema="rules")


def pass_mismatches(step_id: int, lease_id: int, *, most: int = 101) -> Call[FoundMismatch]:
    """Return what a pass found, for the step that corrects it."""
    arguments = {"step_id": step_id, "lease_id": lease_id, "most": most}
    return Call("pass_mismatches", FoundMismatch, arguments, schema="rules", is_read=True)
