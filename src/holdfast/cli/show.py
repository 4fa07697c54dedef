"""The page of one run or step: what happened, how it stands and why, and what may be done about it now."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

from holdfast.cli.common import DB
from holdfast.cli.render import as_json, data, data_pairs, data_table, folded, heading, span
from holdfast.kernel.query import JsonText
from holdfast.reads import run_detail
from holdfast.reads.run_detail import Parent, RunLook, RunStep, StepLook, StoryEntry

STYLES = {
    "failed": "bold red", "error": "bold red", "FAILED": "bold red", "done": "green", "complete": "green",
    "success": "green", "running": "cyan", "in_progress": "cyan", "cancelled": "dim", "no handler": "yellow",
    "set aside": "yellow",
}  # fmt: skip
COMMANDS = {
    "cancelled": "holdfast runs cancel {id}",
    "reopened": "holdfast runs retry {id}",
    "resolved": "holdfast dlq resolve {id}",
}
JSON_COLUMNS = ("input", "cursor", "result", "error", "payload", "about")
SHOWN_OF_EACH = 5
FOLD = 12
LONG_TRACE = 40


@dataclass(frozen=True, slots=True)
class Found:
    """All that a page shows."""

    subject: StepLook | RunLook
    why: str
    steps: list[RunStep]
    story: list[StoryEntry]
    commands: list[str]


def gather(
    connection: DB,
    id: int | UUID,  # noqa: A002 - the word is the same in SQL
    *,
    story: int,
    commands: Mapping[str, str] = COMMANDS,
) -> Found:
    """Read the page; `commands` are the ways to make an event happen by hand."""
    subject: StepLook | RunLook
    steps: list[RunStep] = []
    if isinstance(id, int):
        subject = run_detail.step(connection, id)
        reason = why(subject, run_detail.parents(connection, id) if subject.standing == "waiting" else [])
    else:
        subject = run_detail.run(connection, id)
        steps = run_detail.run_steps(connection, id, each=SHOWN_OF_EACH)
        reason = why_run(subject)
    told = run_detail.story(connection, id, limit=story) if story else []
    possible = [commands[event].format(id=subject.id) for event in run_detail.wishes(connection, subject)]
    return Found(subject, reason, steps, told, possible)


def why(step: StepLook, waits_for: Sequence[Parent]) -> str:
    """Say in a sentence what a step waits for, or how it ended."""
    match step.standing:
        case "due":
            return _why_due(step)
        case "later" if step.due_at is not None:
            left = span(step.due_at - step.looked_at)
            return f"tried again in {left}" if step.failures else f"to be done in {left}"
        case "held" if step.lease_until is not None:
            more = step.lease_until - step.looked_at
            if more < timedelta():
                return f"{step.lease_owner} fell silent: its lease ran out {span(more)} ago"
            return f"{step.lease_owner} has it, under a lease for {span(more)} more"
        case "waiting":
            names = ", ".join(f"{p.name or p.kind} ({p.id}, {p.state})" for p in waits_for)
            return f"waits for {step.waits} other steps: {names}"
        case "no handler" | "set aside":
            return _why_parked(step)
        case _ if step.finished_at is not None:
            return f"over since {span(step.looked_at - step.finished_at)}"
    return "not let in yet"


def _why_parked(step: StepLook) -> str:
    if step.standing == "no handler":
        return f"no live worker serves {step.kind} on queue {step.queue}: start one that does"
    return f"its machine {step.machine} lacks a move; the story's last note says which"


def _why_due(step: StepLook) -> str:
    if step.queue_paused_at is not None:
        because = f": {step.queue_pause_reason}" if step.queue_pause_reason else ""
        then = f"holdfast queues resume {shlex.quote(step.queue)}"
        return f"queue {step.queue} is paused by {step.queue_paused_by}{because}; {then}"
    if step.live_workers == 0:
        return f"due, and no live worker serves {step.kind} on queue {step.queue}: start one that does"
    return f"due; {step.live_workers} live workers serve it"


def why_run(run: RunLook) -> str:
    """Say in a sentence how a run stands."""
    if run.moving is not None:
        return f"being {run.moving}: its steps follow in chunks"
    if run.finished_at is not None:
        return f"over since {span(run.looked_at - run.finished_at)}"
    return f"{run.live} steps live, {run.waiting} waiting for others"


def as_document(found: Found) -> dict[str, Any]:
    """Give the page as JSON has it."""
    subject = asdict(found.subject)
    what = "run" if isinstance(found.subject, RunLook) else "task" if found.subject.run_id is None else "step"
    groups = [
        {"state": group[0].state, "outcome": group[0].outcome, "count": group[0].in_group, "steps": _shown(group)}
        for group in grouped(found.steps)
    ]
    return {
        "what": what,
        **with_json(subject),
        "why": found.why,
        **({"steps": groups} if what == "run" else {}),
        "story": [with_json(asdict(entry)) for entry in found.story],
        "commands": found.commands,
    }


def grouped(steps: Sequence[RunStep]) -> list[list[RunStep]]:
    """Put the steps of a run together by state, in the order given: the failed come first."""
    return [list(group) for _, group in groupby(steps, key=lambda step: (step.state, step.finished_at is None))]


def with_json(row: dict[str, Any]) -> dict[str, Any]:
    """Mark what is JSON in a row."""
    return {k: JsonText(v) if k in JSON_COLUMNS and v is not None else v for k, v in row.items()}


def draw(found: Found) -> None:
    """Print the page for people."""
    subject = found.subject
    data_pairs(_facts(subject, found.why))
    if isinstance(subject, StepLook) and subject.error is not None:
        _draw_error(subject.error)
    for name in ("input", "cursor", "result"):
        text = getattr(subject, name, None)
        if text not in {None, "{}", "null"}:
            heading(name)
            print_all(folded(pretty(str(text)), lines=FOLD))
    if found.steps and isinstance(subject, RunLook):
        _draw_steps(found.steps, subject)
    draw_story(found.story)
    heading("possible now")
    print_all(found.commands or ["nothing: its state is final"])


def draw_story(story: Sequence[StoryEntry]) -> None:
    """Print what happened, in order."""
    if story:
        heading("story")
        data_table(("at", "attempt", "what", "move", "by", "said"), [_told(entry) for entry in story], styles=STYLES)


def pretty(text: str) -> str:
    """Indent JSON, its numbers as they were written; what Python cannot read stays as it is."""
    try:
        return as_json(json.loads(text, parse_float=JsonText, parse_int=JsonText), indent=2)
    except (RecursionError, ValueError):
        return text


def parts_of_error(text: str) -> tuple[str, str, str]:
    """Take an error apart: type, message and trace; one that is no object of ours is a message."""
    try:
        found = json.loads(text)
    except (RecursionError, ValueError):
        return "", text, ""
    if not isinstance(found, dict) or "message" not in found:
        return "", found if isinstance(found, str) else text, ""
    return str(found.get("type", "")), str(found["message"]), str(found.get("trace") or "")


def _draw_error(text: str) -> None:
    kind, message, trace = parts_of_error(text)
    heading("error")
    print_all(folded(f"{kind}: {message}" if kind else message, lines=FOLD))
    if trace:
        print_all(folded("\n".join(trace.splitlines()[-LONG_TRACE:]), lines=LONG_TRACE))


def _draw_steps(steps: Sequence[RunStep], run: RunLook) -> None:
    heading("steps")
    if run.total > run_detail.STEPS_LOOKED_AT:
        data(f"(groups of the first {run_detail.STEPS_LOOKED_AT:,} of {run.total:,}; the counts above are exact)")
    rows: list[Sequence[object]] = []
    for group in grouped(steps):
        rows += [(s.state, s.standing, s.id, s.name or s.kind, s.attempt, s.error) for s in group]
        if group[0].in_group > len(group):
            rows.append((group[0].state, "", f"… {group[0].in_group - len(group)} more", "", "", ""))
    data_table(("state", "standing", "id", "name", "tries", "error"), rows, styles=STYLES)


def _facts(subject: StepLook | RunLook, reason: str) -> dict[str, object]:
    if isinstance(subject, RunLook):
        counts = ("total", "live", "waiting", "succeeded", "failed", "cancelled")
        named: dict[str, object] = {"run": subject.id, "name": subject.name}
        shown = {"steps": ", ".join(f"{getattr(subject, name)} {name}" for name in counts)}
        times = ["created_at", "started_at", "finished_at"]
    else:
        named = {"step": subject.id, "name": subject.step_name, "kind": subject.kind, "run": subject.run_id}
        of = "" if subject.tries is None else f" of {subject.tries}"
        shown = {"queue": subject.queue, "attempts": f"{subject.attempt}, failed tries {subject.failures}{of}"}
        times = ["created_at", "due_at", "claimed_at", "finished_at"]
    standing = {"standing": subject.standing} if isinstance(subject, StepLook) else {}
    head = {"state": subject.state, **standing, "why": reason, "machine": subject.machine, "tenant": subject.tenant}
    return {**named, **head, **shown, **{name: getattr(subject, name) for name in times}}


def _told(entry: StoryEntry) -> tuple[object, ...]:
    move = f"{entry.from_state} → {entry.to_state}" if entry.entry == "move" else entry.entry
    message = entry.said or ""
    if entry.payload not in {None, "{}", "null"}:
        _, fault, _ = parts_of_error(str(entry.payload))
        message = f"{message} {fault}".strip()
    by = f"{entry.actor_kind} {entry.actor}" if entry.actor_kind else ""
    return entry.at, entry.attempt, entry.what, move, by, message


def _shown(steps: Sequence[RunStep]) -> list[dict[str, Any]]:
    return [{k: v for k, v in asdict(s).items() if k != "in_group"} for s in steps]


def print_all(lines: Iterable[str]) -> None:
    """Print lines of data."""
    for line in lines:
        data(line)
