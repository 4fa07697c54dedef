"""The page of one task: its state and why, its failures, the possible actions, and its steps in order."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from psycopg import Connection

from holdfast.flow import reads
from holdfast.flow.graph_view.picture import FEW
from holdfast.flow.reads import TaskDetail, TaskStep
from holdfast.kernel.query import as_mapping
from holdfast.reads import run_detail, run_page
from holdfast.reads.run_detail import StepDetail
from holdfast.reads.run_page import Action, Page, span_text

DB = Connection[Any]
STEP_STORY = 50
TaskPage = Page[TaskDetail, TaskStep]
# Steps that nobody serves come first, because time does not move them.
_BLOCKERS = (
    "no handler", "no move", "parked", "due", "held", "later", "breaker open", "upstream paused", "limited"
)  # fmt: skip


def read(connection: DB, id: int | UUID, *, history: int) -> TaskPage:  # noqa: A002 - the word is the same in SQL
    """Read the page of a task, by its id or that of one of its steps, with part of its history."""
    task_id = reads.task_of(connection, id)
    task, steps = reads.task(connection, task_id), reads.steps(connection, task_id)
    alone = {group[0].id for group in grouped(steps) if len(group) == 1}
    blocker = next(iter(_blockers(task, steps)), None)
    blocking = None if blocker is None else run_detail.step(connection, blocker.id)
    return Page(
        task,
        why(task, steps, blocker, blocking),
        reads.marked(connection, steps, alone),
        reads.history(connection, task_id, limit=history) if history else [],
        actions(task, steps) + ([] if blocking is None else run_page.unblocking(blocking)),
    )


def read_step(connection: DB, id: int | UUID, name: str) -> run_page.RunPage:  # noqa: A002
    """Read the page of one step of a task, by its name."""
    step_id = reads.step_of(connection, reads.task_of(connection, id), name)
    return run_page.read(connection, step_id, story=STEP_STORY)


def as_document(page: TaskPage) -> dict[str, Any]:
    """Return the page as a mapping for JSON output, with the parents of steps by name."""
    names = {step.id: step.name for step in page.steps}

    def row(step: TaskStep) -> dict[str, Any]:
        return asdict(step) | {"id": str(step.id), "parents": [names.get(p, str(p)) for p in step.parents]}

    return {
        **as_mapping(page.subject),
        "why": page.why,
        "failed": [row(step) for step in failed(page.steps)],
        "actions": [asdict(action) for action in page.actions],
        "steps": [row(step) for step in page.steps],
        **({"history": [as_mapping(entry) for entry in page.story]} if page.story else {}),
    }


def failed(steps: Sequence[TaskStep]) -> list[TaskStep]:
    """List the steps that failed for good, in the order of their failures."""
    return sorted((s for s in steps if s.outcome == "failed"), key=lambda s: (s.finished_at, s.id))


def fault_of(step: TaskStep) -> str:
    """Return why a step failed, in one line."""
    return ": ".join(filter(None, (step.error_type, step.message))).partition("\n")[0]


def is_skipped(step: TaskStep, task: TaskDetail) -> bool:
    """Return whether a step was skipped, by the start or by the flow's condition."""
    return step.name in task.skip or (step.mark is not None and step.mark.what == "skipped")


def grouped(steps: Sequence[TaskStep]) -> list[list[TaskStep]]:
    """Group many equal steps: the items of a map."""
    shapes: dict[str, list[TaskStep]] = defaultdict(list)
    for step in steps:
        shapes[re.sub(r"\[\d+\]", "[]", step.name)].append(step)
    split = [[group] if len(group) > FEW else [[step] for step in group] for group in shapes.values()]
    return sorted((group for some in split for group in some), key=lambda group: group[0].id)


def range_of(group: Sequence[TaskStep]) -> str:
    """Format the names of many items as one: `ship[0..9999]`."""
    numbers = [[int(n) for n in re.findall(r"\[(\d+)\]", step.name)] for step in group]
    ends = iter([(min(column), max(column)) for column in zip(*numbers, strict=True)])

    def bounds(_: re.Match[str]) -> str:
        low, high = next(ends)
        return f"[{low}]" if low == high else f"[{low}..{high}]"

    return re.sub(r"\[\d+\]", bounds, group[0].name)


def why(task: TaskDetail, steps: Sequence[TaskStep], blocker: TaskStep | None, detail: StepDetail | None) -> str:
    """Return a sentence on what a task waits for, or how it ended; `blocker` is the step that it waits for."""
    dead, cancelled = failed(steps), _cancelled(task, steps)
    if dead and task.outcome != "succeeded":
        return f"step {dead[0].name} failed: {fault_of(dead[0])}{_and_more(dead)}"
    if cancelled:
        return (
            f"step {cancelled[0].name} was cancelled{_and_more(cancelled)}, so the steps that wait for it did not run"
        )
    if task.finished_at is not None:
        return f"{run_page.OVER.get(task.outcome or '', 'over')} {span_text(task.looked_at - task.finished_at)} ago"
    if task.moving is not None:
        return f"being {task.moving}: its steps follow in chunks"
    if blocker is not None and detail is not None:
        return f"step {blocker.name}: {run_page.why(detail, [])}"
    return "waits for its steps"


def actions(task: TaskDetail, steps: Sequence[TaskStep]) -> list[Action]:
    """List the possible actions on a task."""
    dead = failed(steps)
    if task.finished_at is None:
        stop = Action("cancel", task.id, "stop it and all its steps")
        return [stop, *(_for_failed(task, dead[0]) if dead else [])]
    if dead and task.outcome == "failed":
        again = Action("retry", task.id, "retry what failed, with a fresh budget of tries")
        return [again, *_for_failed(task, dead[0])]
    if cancelled := _cancelled(task, steps):
        return [
            Action("retry_from", task.id, "repeat it and all that wait for it, in a new run", cancelled[0].name),
            Action("resolve", task.id, "mark the run as resolved, unchanged"),
        ]
    return [Action("retry_from", task.id, "repeat a step and all that wait for it, in a new run")]


def _for_failed(task: TaskDetail, step: TaskStep) -> list[Action]:
    return [
        Action("retry", task.id, f"retry {step.name}", step.name),
        Action("resolve", task.id, "resolve it by hand with a result, and continue", step.name),
        Action("show", task.id, "see its error, trace and history", step.name),
    ]


def _cancelled(task: TaskDetail, steps: Sequence[TaskStep]) -> list[TaskStep]:
    """List the cancelled steps of a task that failed because of them."""
    return [step for step in steps if step.outcome == "cancelled"] if task.outcome == "failed" else []


def _blockers(task: TaskDetail, steps: Sequence[TaskStep]) -> list[TaskStep]:
    """List the steps that a task waits for, those that need a person first; none once one has failed."""
    if task.finished_at is not None or task.moving is not None or failed(steps):
        return []
    free = [step for step in steps if step.outcome is None and step.standing in _BLOCKERS]
    return sorted(free, key=lambda step: _BLOCKERS.index(step.standing))


def _and_more(steps: Sequence[TaskStep]) -> str:
    return f", and {len(steps) - 1} more" if len(steps) > 1 else ""
