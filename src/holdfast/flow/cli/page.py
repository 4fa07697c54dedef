"""The page of one task: how it stands, what failed, what to do about it, and its steps in the order of the plan."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from holdfast.cli import show as page
from holdfast.cli.common import DB
from holdfast.cli.render import as_json as written
from holdfast.cli.render import cut, data_json, data_pairs, data_table, heading, say
from holdfast.flow import reads
from holdfast.flow.graph_view.picture import FEW, SIGNS, counted, mood_of, tries_of
from holdfast.flow.reads import Mark, TaskLook, TaskStep
from holdfast.kernel.query import JsonText
from holdfast.reads import run_detail as kernel
from holdfast.reads import standing
from holdfast.reads.run_detail import StoryEntry
from holdfast.reads.standing import span_text

STYLES = page.STYLES | {"resolved_manually": "magenta", "skipped": "magenta", "pending": "dim"}
COMMANDS = {
    "cancelled": "holdfast flow cancel {id}",
    "reopened": "holdfast flow retry {id}",
    "resolved": "holdfast flow resolve {id}",
}
SHOWN_FAILED = 3
STORY = 50
COLUMNS = ("step", "state", "tries", "when", "worker", "after", "said")


@dataclass(frozen=True, slots=True)
class Found:
    """All that a page shows; `failed` are the first that failed for good, in the order that they did."""

    task: TaskLook
    why: str
    failed: list[TaskStep]
    steps: list[TaskStep]
    marks: dict[int, Mark]
    history: list[StoryEntry]
    commands: dict[str, str]


def gather(connection: DB, id: int | UUID, *, history: int) -> Found:  # noqa: A002 - the word is the same in SQL
    """Read the page."""
    task_id = reads.task_of(connection, id)
    task, steps = reads.task(connection, task_id), reads.steps(connection, task_id)
    failed = sorted((s for s in steps if s.outcome == "failed"), key=lambda s: (s.finished_at, s.id))
    shown = [step.id for group in groups(steps) if len(group) == 1 for step in group]
    return Found(
        task,
        why(connection, task, steps, failed),
        failed,
        steps,
        reads.marks(connection, shown),
        reads.history(connection, task_id, limit=history) if history else [],
        commands(task, steps, failed),
    )


def show_step(connection: DB, id: int | UUID, name: str, *, as_json: bool) -> None:  # noqa: A002
    """Show one step of a task, by its name."""
    step_id = reads.step_of(connection, reads.task_of(connection, id), name)
    found = standing.gather(connection, step_id, story=STORY, commands=COMMANDS)
    if as_json:
        data_json(page.as_document(found))
    else:
        page.draw(found)


def why(connection: DB, task: TaskLook, steps: Sequence[TaskStep], failed: Sequence[TaskStep]) -> str:
    """Say in a sentence what a task waits for, or how it ended."""
    if failed and task.outcome != "succeeded":
        many = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
        return f"step {failed[0].name} failed for good{many}"
    if cancelled := _cancelled(task, steps):
        many = f", and {len(cancelled) - 1} more" if len(cancelled) > 1 else ""
        return f"step {cancelled[0].name} was cancelled{many}: what waits for it did not run"
    if task.finished_at is not None:
        return f"over since {span_text(task.looked_at - task.finished_at)}"
    if task.moving is not None:
        return f"being {task.moving}: its steps follow in chunks"
    free = [step for step in steps if step.outcome is None and step.standing != "waiting"]
    # What nobody serves first: it goes on by no clock of ours.
    for step in sorted(
        free, key=lambda s: ("no handler", "set aside", "parked", "due", "held", "later").index(s.standing)
    ):
        return f"step {step.name}: {standing.why(kernel.step(connection, step.id), [])}"
    return "waits for its steps"


def commands(task: TaskLook, steps: Sequence[TaskStep], failed: Sequence[TaskStep]) -> dict[str, str]:
    """List what may be done now, each with what it does."""
    if task.finished_at is None:
        found = {f"holdfast flow cancel {task.id}": "stop it and all its steps"}
        if failed:
            found |= _for_failed(task, failed[0])
        return found
    if failed and task.state == "error":
        again = {f"holdfast flow retry {task.id}": "try all that failed again, with a fresh budget of tries"}
        return again | _for_failed(task, failed[0])
    if cancelled := _cancelled(task, steps):
        name = shlex.quote(cancelled[0].name)
        return {
            f"holdfast flow retry {task.id} --from {name}": "do it and all that waits for it again, in a new task",
            f"holdfast flow resolve {task.id}": "say that the task is dealt with as it is",
        }
    return {f"holdfast flow retry {task.id} --from STEP": "do a step and all that waits for it again, in a new task"}


def _cancelled(task: TaskLook, steps: Sequence[TaskStep]) -> list[TaskStep]:
    """List the cancelled steps of a task that ended in error because of them."""
    return [step for step in steps if step.outcome == "cancelled"] if task.state == "error" else []


def groups(steps: Sequence[TaskStep]) -> list[list[TaskStep]]:
    """Put steps of one shape together where they are many: the items of a map."""
    found: dict[str, list[TaskStep]] = defaultdict(list)
    for step in steps:
        found[re.sub(r"\[\d+\]", "[]", step.name)].append(step)
    split = [[group] if len(group) > FEW else [[step] for step in group] for group in found.values()]
    return sorted((group for some in split for group in some), key=lambda group: group[0].id)


def as_document(found: Found) -> dict[str, Any]:
    """Give the page as JSON has it."""
    names = {step.id: step.name for step in found.steps}
    task = asdict(found.task)
    return {
        **task,
        "context": JsonText(found.task.context),
        "why": found.why,
        "failed": [_row(step, names, found.marks) for step in found.failed],
        "commands": found.commands,
        "steps": [_row(step, names, found.marks) for step in found.steps],
        **({"history": [page.with_json(asdict(entry)) for entry in found.history]} if found.history else {}),
    }


def draw(found: Found) -> None:
    """Print the page for people: the answer to what happened and what to do stands above the steps."""
    data_pairs(_facts(found))
    if found.failed:
        heading("failed")
        rows = [(f"✗ {s.name}", _fault(s), f"{_tries(s)} tries", s.finished_at) for s in found.failed[:SHOWN_FAILED]]
        data_table(("step", "error", "tries", "at"), rows)
        if len(found.failed) > SHOWN_FAILED:
            say(f"and {len(found.failed) - SHOWN_FAILED} more; --json has them all")
    heading("possible now")
    page.print_all(line for command, does in found.commands.items() for line in (f"{does}:", f"  {command}"))
    heading("steps")
    if found.task.total > len(found.steps):
        say(f"the first {len(found.steps):,} of {found.task.total:,} steps")
    names = {step.id: step.name for step in found.steps}
    data_table(COLUMNS, [_cells(group, found, names) for group in groups(found.steps)], styles=STYLES)
    page.draw_story(found.history)


def progress(succeeded: int, total: int, failed: int) -> str:
    """Write how far a task is."""
    return f"{succeeded}/{total}" + (f" ({failed} failed)" if failed else "")


def _for_failed(task: TaskLook, step: TaskStep) -> dict[str, str]:
    name = shlex.quote(step.name)
    return {
        f"holdfast flow retry {task.id} {name}": f"try {step.name} again",
        f"holdfast flow resolve {task.id} {name} --result JSON": "say what it should have given, and go on",
        f"holdfast flow show {task.id} --step {name}": "see its error, trace and story",
    }


def _facts(found: Found) -> dict[str, object]:
    task = found.task
    done = f"{task.succeeded} of {task.total} steps ({task.completion_percentage:g} %)"
    more = {"failed": task.failed, "cancelled": task.cancelled}
    by = [
        task.started_by,
        task.initiator and f"for {task.initiator}",
        task.source_system and f"from {task.source_system}",
    ]
    return {
        "task": task.id,
        "flow": f"{task.name} {task.version}" + ("" if task.namespace == "default" else f" in {task.namespace}"),
        "state": task.state,
        "why": found.why,
        "execution": f"{task.execution_status}, {task.health_status}: {task.recommended_action}",
        "progress": ", ".join([done, *(f"{count} {what}" for what, count in more.items() if count)]),
        "started_by": ", ".join(filter(None, by)),
        "reason": task.reason,
        "tags": task.tags or None,
        "skipped": task.skip or None,
        "again_of": task.retry_of,
        "tenant": task.tenant,
        "created": task.created_at,
        "started": task.started_at,
        "next_retry": task.earliest_retry_at,
        "finished": task.finished_at,
        "context": cut(written(JsonText(task.context), indent=None), 500),
    }


def _cells(group: Sequence[TaskStep], found: Found, names: Mapping[int, str]) -> tuple[object, ...]:
    if len(group) > 1:
        return (f"{_sign(group)} {_range(group)}", counted(group), "", "", "", "", "")
    (step,) = group
    mark = found.marks.get(step.id)
    is_skipped = step.name in found.task.skip or (mark is not None and mark.what == "skipped")
    sign, state = SIGNS[mood_of(step, is_skipped=is_skipped)], "skipped" if is_skipped else step.state
    said = _said(mark) or (_fault(step) if step.outcome != "succeeded" else "")
    return f"{sign} {step.name}", state, _tries(step), _when(step, found.task), step.worker, _after(step, names), said


def _after(step: TaskStep, names: Mapping[int, str]) -> str:
    """Name what a step waits for, but for what it planned itself."""
    awaited = [names.get(parent, f"step {parent}") for parent in step.parents]
    outer = [name for name in awaited if not name.startswith((f"{step.name}[", f"{step.name}."))]
    return ", ".join(outer) if len(outer) <= FEW else f"{', '.join(outer[:2])} and {len(outer) - 2:,} more"


def _sign(group: Sequence[TaskStep]) -> str:
    moods = {mood_of(step) for step in group}
    return SIGNS[next(mood for mood in ("failed", "retrying", "running", "ready", "waiting", *SIGNS) if mood in moods)]


def _range(group: Sequence[TaskStep]) -> str:
    """Write the names of many items as one: `ship[0..9999]`."""
    numbers = [[int(n) for n in re.findall(r"\[(\d+)\]", step.name)] for step in group]
    ends = iter([(min(column), max(column)) for column in zip(*numbers, strict=True)])

    def bounds(_: re.Match[str]) -> str:
        low, high = next(ends)
        return f"[{low}]" if low == high else f"[{low}..{high}]"

    return re.sub(r"\[\d+\]", bounds, group[0].name)


def _tries(step: TaskStep) -> str:
    return f"{tries_of(step)}" if step.tries is None else f"{tries_of(step)}/{step.tries}"


def _when(step: TaskStep, task: TaskLook) -> str:
    if step.finished_at is not None:
        return "" if step.claimed_at is None else f"took {span_text(step.finished_at - step.claimed_at)}"
    if step.standing == "held" and step.claimed_at is not None:
        return f"{span_text(task.looked_at - step.claimed_at)} so far"
    if step.due_at is not None and step.due_at > task.looked_at:
        return f"{'again ' if step.failures else ''}in {span_text(step.due_at - task.looked_at)}"
    return step.standing


def _fault(step: TaskStep) -> str:
    return ": ".join(filter(None, (step.error_type, step.message))).partition("\n")[0]


def _said(mark: Mark | None) -> str:
    if mark is None:
        return ""
    return mark.what + (f" by {mark.by}" if mark.by else "") + (f": {mark.why}" if mark.why else "")


def _row(step: TaskStep, names: dict[int, str], marks: dict[int, Mark]) -> dict[str, Any]:
    mark = marks.get(step.id)
    parents = [names.get(parent, str(parent)) for parent in step.parents]
    return asdict(step) | {"id": str(step.id), "parents": parents, "mark": None if mark is None else asdict(mark)}
