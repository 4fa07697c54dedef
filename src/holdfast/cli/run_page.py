"""Prints the page of one run or step: its history, its state and why, and the possible actions."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from holdfast.cli.render import Styled, data, data_json, data_pairs, folded, heading
from holdfast.cli.render import as_json as written
from holdfast.cli.table import NEVER, Column, data_table
from holdfast.kernel.query import JsonText
from holdfast.models import error_text
from holdfast.reads import run_detail, run_page
from holdfast.reads.run_detail import RunDetail, StepDetail, StoryEntry
from holdfast.reads.run_page import Action, PrunedPage, RunPage, StepGroup

# A state is a machine's own word: its colour and sign follow from its phase and, once it has ended, its outcome.
STYLES: dict[tuple[str | None, str | None], tuple[str, str]] = {
    ("shut", None): ("dim", "·"),
    ("open", None): ("", "○"),
    ("held", None): ("cyan", "▶"),
    ("over", "succeeded"): ("green", "✓"),
    ("over", "partial"): ("yellow", "◐"),
    ("over", "failed"): ("bold red", "✗"),
    ("over", "cancelled"): ("dim", "⊘"),
    ("over", "undone"): ("magenta", "↶"),
}
STANDINGS = dict.fromkeys(
    ("no handler", "no move", "parked", "paused", "limited", "upstream paused", "breaker open"), "yellow"
)
EVENTS = {"succeeded": "green", "retried": "yellow", "expired": "yellow", "failed": "bold red", "cancelled": "dim"}
COMMANDS = {
    "cancel": "holdfast runs cancel {target}",
    "retry": "holdfast runs retry {target}",
    "resolve": "holdfast dlq resolve {target}",
    "resume_queue": "holdfast queues resume {target}",
    "resume_run": "holdfast runs resume {target}",
    "show_limit": "holdfast limits show {target}",
}
STEP_COLUMNS = (
    Column("state"),
    Column("standing", "over", rank=4),
    Column("id", NEVER, rank=1),
    Column("name", NEVER, rank=2, least=10),
    Column("tries", (0, 1), rank=5),
    Column("error", rank=3, least=16, folds=True),
)
STORY_COLUMNS = (
    Column("at"),
    Column("attempt", rank=6),
    Column("what", NEVER, rank=1),
    Column("move", rank=5),
    Column("by", rank=4, least=12),
    Column("message", rank=2, least=16, folds=True),
)
FOLD = 12
LONG_TRACE = 40


class HasState(Protocol):
    """A row that shows a state."""

    @property
    def state(self) -> str:
        """The state, in its machine's own word."""

    @property
    def phase(self) -> str | None:
        """The state's meaning to the kernel."""

    @property
    def outcome(self) -> str | None:
        """How it ended; None before."""


def state_cell(row: HasState) -> Styled:
    """Return a state as a cell, with its colour and sign."""
    style, sign = STYLES.get((row.phase, row.outcome), ("", ""))
    return Styled(row.state, style, sign)


def commands(actions: Sequence[Action], forms: Mapping[str, str] = COMMANDS) -> list[str]:
    """Format actions as command lines, each by its name's template."""
    return [forms[a.name].format(target=shlex.quote(a.target), step=shlex.quote(a.step or "")) for a in actions]


def show(page: RunPage, forms: Mapping[str, str] = COMMANDS, *, as_json: bool) -> None:
    """Print the page, for people or as JSON."""
    if as_json:
        data_json(run_page.as_document(page) | {"commands": commands(page.actions, forms)})
    else:
        draw(page, commands(page.actions, forms))


def show_pruned(page: PrunedPage, *, as_json: bool) -> None:
    """Print what is left of a task or run that retention removed."""
    removal = page.removal
    if as_json:
        data_json(run_page.pruned_document(page))
        return
    by = "not by retention" if removal.rule is None else f"by the rule {removal.rule}"
    data_pairs(
        {
            removal.label: removal.id,
            "state": removal.state,
            "why": f"removed {by}; its row is gone, its history stays until retention drops that month",
            "machine": removal.machine,
            "run": removal.run_id if str(removal.run_id) != removal.id else None,
            "finished_at": removal.finished_at,
            "pruned_at": removal.pruned_at,
        }
    )
    draw_story(page.story, page.looked_at)


def draw(page: RunPage, possible: Sequence[str]) -> None:
    """Print the page for people."""
    subject = page.subject
    data_pairs(_facts(subject, page.why))
    if isinstance(subject, StepDetail) and subject.error is not None:
        _draw_error(subject.error)
    for name in ("input", "cursor", "result"):
        text = getattr(subject, name, None)
        if text not in {None, "{}", "null"}:
            heading(name)
            print_all(folded(pretty(str(text)), lines=FOLD))
    if page.steps and isinstance(subject, RunDetail):
        _draw_steps(page.steps, subject)
    draw_story(page.story, subject.looked_at)
    heading("possible now")
    print_all(possible or ["nothing: its state is final"])


def draw_story(story: Sequence[StoryEntry], now: datetime) -> None:
    """Print the history in order; on a terminal, show each time as an age."""
    if story:
        heading("story")
        data_table(STORY_COLUMNS, [_told(entry) for entry in story], styles=EVENTS, now=now)


def pretty(text: str) -> str:
    """Indent JSON without changing its numbers; leave JSON that Python cannot parse unchanged."""
    try:
        return written(json.loads(text, parse_float=JsonText, parse_int=JsonText), indent=2)
    except (RecursionError, ValueError):
        return text


def parts_of_error(text: str) -> tuple[str, str, str]:
    """Split an error into type, message and trace; any other value is a message."""
    try:
        value = json.loads(text)
    except (RecursionError, ValueError):
        return "", text, ""
    if not isinstance(value, dict) or "message" not in value:
        return "", error_text(value), ""
    return str(value.get("type", "")), error_text(value), str(value.get("trace") or "")


def _draw_error(text: str) -> None:
    kind, message, trace = parts_of_error(text)
    heading("error")
    print_all(folded(f"{kind}: {message}" if kind else message, lines=FOLD))
    if trace:
        print_all(folded("\n".join(trace.splitlines()[-LONG_TRACE:]), lines=LONG_TRACE))


def _draw_steps(groups: Sequence[StepGroup], run: RunDetail) -> None:
    heading("steps")
    if run.total > run_detail.STEPS_LOOKED_AT:
        data(f"(groups of the first {run_detail.STEPS_LOOKED_AT:,} of {run.total:,}; the counts above are exact)")
    rows: list[Sequence[object]] = []
    for group in groups:
        rows += [(state_cell(s), s.standing, s.id, s.name or s.kind, s.attempt, s.error) for s in group.steps]
        if group.count > len(group.steps):
            rows.append((state_cell(group), "", f"… {group.count - len(group.steps)} more", "", "", ""))
    data_table(STEP_COLUMNS, rows, styles=STANDINGS)


def _facts(subject: StepDetail | RunDetail, reason: str) -> dict[str, object]:
    if isinstance(subject, RunDetail):
        counts = ("total", "live", "waiting", "succeeded", "failed", "cancelled")
        named: dict[str, object] = {"run": subject.id, "name": subject.name}
        shown = {"steps": ", ".join(f"{getattr(subject, name)} {name}" for name in counts)}
        if subject.unadmitted:
            shown["admitted"] = f"{subject.total - subject.unadmitted}, {subject.unadmitted} not admitted"
        times = ["created_at", "queued_at", "started_at", "finished_at"]
    else:
        named = {"step": subject.id, "name": subject.step_name, "kind": subject.kind, "run": subject.run_id}
        shown = {"queue": subject.queue, "attempts": _attempts(subject)}
        times = ["created_at", "due_at", "claimed_at", "finished_at"]
    standing = {"standing": subject.standing} if isinstance(subject, StepDetail) else {}
    head = {"state": subject.state, **standing, "why": reason, "machine": subject.machine, "tenant": subject.tenant}
    return {**named, **head, **shown, **{name: getattr(subject, name) for name in times}}


def _attempts(step: StepDetail) -> str:
    """Format how often it was tried, with the limit of failures only while a try is left."""
    if not step.failures or step.finished_at is not None:
        return f"{step.attempt}"
    return f"{step.attempt}, {step.failures} failed" + ("" if step.tries is None else f" of {step.tries}")


def _told(entry: StoryEntry) -> tuple[object, ...]:
    move = f"{entry.from_state} → {entry.to_state}" if entry.entry == "move" else entry.entry
    message = entry.message or ""
    if entry.payload not in {None, "{}", "null"}:
        _, fault, _ = parts_of_error(str(entry.payload))
        message = f"{message} {fault}".strip()
    by = f"{entry.actor_kind} {entry.actor}" if entry.actor_kind else ""
    return entry.at, entry.attempt, entry.what, move, by, message


def print_all(lines: Iterable[str]) -> None:
    """Print lines of data."""
    for line in lines:
        data(line)
