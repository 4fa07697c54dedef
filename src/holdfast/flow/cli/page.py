"""Prints the page of one run: failures and possible actions come before the steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.cli import run_page
from holdfast.cli.render import Styled, cut, data_json, data_pairs, heading, say
from holdfast.cli.render import as_json as written
from holdfast.cli.table import NEVER, Column, data_table
from holdfast.flow import task_page
from holdfast.flow.graph_view.picture import FEW, SIGNS, Mood, counted, mood_of, tries_of
from holdfast.flow.reads import Mark, TaskDetail, TaskStep
from holdfast.flow.task_page import TaskPage
from holdfast.kernel.query import JsonText
from holdfast.reads.run_page import Action, RunPage, span_text

STYLES: dict[Mood, str] = {
    "planned": "cyan", "waiting": "dim", "ready": "cyan", "running": "bold cyan", "retrying": "yellow",
    "complete": "green", "skipped": "magenta", "resolved": "magenta", "failed": "bold red", "cancelled": "dim",
}  # fmt: skip
COMMANDS = {
    "cancel": "holdfast flow cancel {target}",
    "retry": "holdfast flow retry {target}",
    "retry_from": "holdfast flow retry {target} --from STEP",
    "resolve": "holdfast flow resolve {target}",
    "resume_queue": run_page.COMMANDS["resume_queue"],
    "resume_run": run_page.COMMANDS["resume_run"],
    "show_limit": run_page.COMMANDS["show_limit"],
}
COMMANDS_OF_A_STEP = {
    "retry": "holdfast flow retry {target} {step}",
    "retry_from": "holdfast flow retry {target} --from {step}",
    "resolve": "holdfast flow resolve {target} {step} --result JSON",
    "show": "holdfast flow show {target} --step {step}",
}
SHOWN_FAILED = 3
COLUMNS = (
    Column("step", least=12),
    Column("state", NEVER, rank=1),
    Column("tries", ("0", "1", "0 of 1", "1 of 1"), rank=5),
    Column("when", rank=3),
    Column("worker", rank=7, least=12),
    Column("after", rank=6, least=10),
    Column("message", rank=2, least=16, folds=True),
)
FAILED_COLUMNS = (
    Column("step", least=12),
    Column("error", NEVER, rank=1, least=20, folds=True),
    Column("tries", rank=3),
    Column("at", NEVER, rank=2),
)


def show_page(page: TaskPage, *, as_json: bool) -> None:
    """Print the page, for people or as JSON."""
    possible = {command(action): action.why for action in page.actions}
    if as_json:
        data_json(task_page.as_document(page) | {"commands": possible})
    else:
        draw(page, possible)


def show_step(page: RunPage, *, as_json: bool) -> None:
    """Print the page of one step, with the commands of flows."""
    run_page.show(page, COMMANDS, as_json=as_json)


def command(action: Action) -> str:
    """Format an action as a command line."""
    (line,) = run_page.commands([action], COMMANDS if action.step is None else COMMANDS_OF_A_STEP)
    return line


def draw(page: TaskPage, possible: Mapping[str, str]) -> None:
    """Print the page for people: what happened and what to do come before the steps."""
    failed = task_page.failed(page.steps)
    data_pairs(_facts(page))
    if failed:
        heading("failed")
        rows = [(f"✗ {s.name}", task_page.fault_of(s), _tries(s), s.finished_at) for s in failed[:SHOWN_FAILED]]
        data_table(FAILED_COLUMNS, rows, now=page.subject.looked_at)
        if len(failed) > SHOWN_FAILED:
            say(f"and {len(failed) - SHOWN_FAILED} more; --json has them all")
    heading("possible now")
    run_page.print_all(line for command, effect in possible.items() for line in (f"{effect}:", f"  {command}"))
    heading("steps")
    if page.subject.total > len(page.steps):
        say(f"the first {len(page.steps):,} of {page.subject.total:,} steps")
    names = {step.id: step.name for step in page.steps}
    groups = task_page.grouped(page.steps)
    data_table(COLUMNS, [_cells(group, page.subject, names) for group in groups])
    run_page.draw_story(page.story, page.subject.looked_at)


def _facts(page: TaskPage) -> dict[str, object]:
    task = page.subject
    done = f"{task.succeeded} of {task.total} steps ({task.completion_percentage:g} %)"
    more = {"failed": task.failed, "cancelled": task.cancelled}
    by = [
        task.started_by,
        task.initiator and f"for {task.initiator}",
        task.source_system and f"from {task.source_system}",
    ]
    return {
        "run": task.id,
        "flow": f"{task.name} {task.version}" + ("" if task.namespace == "default" else f" in {task.namespace}"),
        "state": task.state,
        "why": page.why,
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


def _cells(group: Sequence[TaskStep], task: TaskDetail, names: Mapping[int, str]) -> tuple[object, ...]:
    if len(group) > 1:
        return (f"{_sign(group)} {task_page.range_of(group)}", counted(group), "", "", "", "", "")
    (step,) = group
    is_skipped = task_page.is_skipped(step, task)
    mood = mood_of(step, is_skipped=is_skipped)
    state = Styled("skipped" if is_skipped else step.state, STYLES[mood])
    note = _mark(step.mark) or (task_page.fault_of(step) if step.outcome != "succeeded" else "")
    return f"{SIGNS[mood]} {step.name}", state, _tries(step), _when(step, task), step.worker, _after(step, names), note


def _after(step: TaskStep, names: Mapping[int, str]) -> str:
    """Return the steps that a step waits for, except those that it planned."""
    awaited = [names.get(parent, f"step {parent}") for parent in step.parents]
    outer = [name for name in awaited if not name.startswith((f"{step.name}[", f"{step.name}."))]
    return ", ".join(outer) if len(outer) <= FEW else f"{', '.join(outer[:2])} and {len(outer) - 2:,} more"


def _sign(group: Sequence[TaskStep]) -> str:
    moods = {mood_of(step) for step in group}
    return SIGNS[next(mood for mood in ("failed", "retrying", "running", "ready", "waiting", *SIGNS) if mood in moods)]


def _tries(step: TaskStep) -> str:
    """Format how many tries it took, with the limit only while a try is left."""
    tries = tries_of(step)
    return f"{tries}" if step.tries is None or step.finished_at is not None else f"{tries} of {step.tries}"


def _when(step: TaskStep, task: TaskDetail) -> str:
    if step.finished_at is not None:
        return "" if step.claimed_at is None else f"took {span_text(step.finished_at - step.claimed_at)}"
    if step.standing == "held" and step.claimed_at is not None:
        return f"{span_text(task.looked_at - step.claimed_at)} so far"
    if step.due_at is not None and step.due_at > task.looked_at:
        return f"{'again ' if step.failures else ''}in {span_text(step.due_at - task.looked_at)}"
    return step.standing if step.limited_by is None else f"{step.standing}: {step.limited_by}"


def _mark(mark: Mark | None) -> str:
    if mark is None:
        return ""
    return mark.what + (f" by {mark.by}" if mark.by else "") + (f": {mark.why}" if mark.why else "")
