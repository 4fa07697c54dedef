"""The page of one run or step: what happened, how it stands and why, and what may be done about it now."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from holdfast.cli.render import as_json, data, data_pairs, data_table, folded, heading
from holdfast.kernel.query import JsonText
from holdfast.reads import run_detail
from holdfast.reads.run_detail import RunLook, RunStep, StepLook, StoryEntry
from holdfast.reads.standing import Found, grouped

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
FOLD = 12
LONG_TRACE = 40


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
