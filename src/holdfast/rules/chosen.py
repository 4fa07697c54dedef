"""Checks of what callers pass: targets by number or by item, a status, and what belongs to a preview."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection

from holdfast.errors import BadInput, NotFound
from holdfast.kernel.call import Executor, check_names
from holdfast.rules import reads
from holdfast.spelling import did_you_mean

Chosen = Sequence[int | str]  # targets, by number or by item
LARGEST = 2**63 - 1
LONGEST_ITEM = 400  # characters of an item, a key or a correlation id


def numbers(executor: Executor, run_id: UUID, chosen: Chosen | None, where: str = "only") -> list[int] | None:
    """Return targets by their numbers; texts are ids of items."""
    if chosen is None:
        return None
    if isinstance(chosen, str | bytes) or not isinstance(chosen, Iterable):
        raise BadInput(f"targets must be a list, got {chosen!r:.60}", where=where, next=f"use [{chosen!r:.60}]")
    named = list(chosen)
    odd = [each for each in named if not isinstance(each, str) and not _is_number(each)]
    if odd:
        raise BadInput(f"a target is named by its number or its item, got {odd[0]!r:.60}", where=where,
                       next=f"list them: holdfast rules targets {run_id}")  # fmt: skip
    items = [each for each in named if isinstance(each, str)]
    numbers: dict[str, int] = {}
    if items:
        with executor.connection() as connection:
            numbers = {each.item_id: each.id for each in reads.targets_of_items(connection, run_id, items)}
    missing = next((item for item in items if item not in numbers), None)
    if missing is not None:
        raise NotFound(f"run {run_id} has no target for item {missing}", where=missing,
                       next=f"list them: holdfast rules targets {run_id}")  # fmt: skip
    return [numbers[each] if isinstance(each, str) else each for each in named]


def checked_run_id(run_id: UUID | str) -> UUID:
    """Return the id of a run; raise BadInput for anything else."""
    try:
        return run_id if isinstance(run_id, UUID) else UUID(run_id)
    except (ValueError, AttributeError, TypeError):
        raise BadInput(f"a run's id must be a UUID, got {run_id!r:.60}", where="run_id",
                       next="find the id with `holdfast rules list`") from None  # fmt: skip


def check_status(connection: Connection[Any], machine: str, status: str | None) -> None:
    """Raise BadInput for a status that no row of the machine can have."""
    if status is None:
        return
    known = reads.states(connection, machine)
    if status not in known:
        hint = did_you_mean(str(status).upper(), known)
        raise BadInput(f"there is no status {status!r:.60}", where="status", next=hint)


def check_apply(plan: Any, first: Any, actor: Any) -> None:
    """Raise BadInput for an option of an apply that has another type."""
    check_names([("actor", actor)])
    if plan is not None and not isinstance(plan, str):
        raise BadInput(f"plan must be text, got {plan!r:.60}", where="plan", next="use 8 or more digits of the hash")
    if first is not None and not (_is_number(first) and 1 <= first < 2**31):
        raise BadInput(f"first must be a whole number of 1 or more, got {first!r:.60}", where="first", next="use 50")


def check_most(most: Any) -> None:
    """Raise BadInput unless the value is a number of rows."""
    if not (_is_number(most) and most >= 1):
        raise BadInput(f"most must be a whole number of 1 or more, got {most!r:.60}", where="most", next="use 100")


def check_retry(classes: Any, actor: str | None) -> None:
    """Raise BadInput unless classes are a list of known ones, and the actor can be a name."""
    check_names([("actor", actor)])
    if isinstance(classes, str):
        raise BadInput(f"classes must be a list, got {classes!r:.60}", where="classes", next=f"use [{classes!r:.60}]")


def check_metadata(metadata: Any) -> None:
    """Raise BadInput for metadata that is not a JSON object, or whose correlationId is not text."""
    if metadata is None:
        return
    if not isinstance(metadata, Mapping):
        raise BadInput(f"metadata must be a mapping, got {metadata!r:.60}", where="metadata",
                       next='use such as {"correlationId": "req-1"}')  # fmt: skip
    try:
        json.dumps(dict(metadata))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"metadata cannot be written as JSON: {error}", where="metadata",
                       next="use text, numbers, lists and mappings") from None  # fmt: skip
    check_names([("correlationId", metadata.get("correlationId"))], LONGEST_ITEM)


def _is_number(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and abs(given) <= LARGEST
