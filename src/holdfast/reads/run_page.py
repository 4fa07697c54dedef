"""The page of one run or step: its state and why, its history, and the possible actions.

A face with its own page returns the same shape, so that the command line, the API and the console render only one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Generic, TypeVar
from uuid import UUID

from psycopg import Connection

from holdfast.errors import NotFound
from holdfast.kernel.query import as_mapping, clock
from holdfast.kernel.retention_calls import Removal
from holdfast.models import error_text
from holdfast.reads import retention, run_detail
from holdfast.reads.run_detail import Parent, RunDetail, RunStep, StepDetail, StoryEntry

SHOWN_OF_EACH = 5  # steps of a run, of each state
Subject = TypeVar("Subject")
Step = TypeVar("Step")
OVER = {"succeeded": "succeeded", "failed": "failed", "partial": "some steps failed", "cancelled": "cancelled"}
ACTIONS = {  # the event that a person may cause, the action that causes it, and its effect
    "cancelled": ("cancel", "stop it, with all steps that have not ended"),
    "reopened": ("retry", "retry what failed, with a fresh budget of tries"),
    "resolved": ("resolve", "mark it as resolved by hand"),
}


@dataclass(frozen=True, slots=True)
class Action:
    """A possible action: `target` is the id or queue that it applies to, `step` the name of a step of the target."""

    name: str
    target: str
    why: str
    step: str | None = None


@dataclass(frozen=True, slots=True)
class StepGroup:
    """The steps of a run in one state: their number, and the first of them."""

    state: str
    phase: str | None
    outcome: str | None
    count: int
    steps: list[RunStep]


@dataclass(frozen=True, slots=True)
class Page(Generic[Subject, Step]):
    """Everything that a page shows."""

    subject: Subject
    why: str
    steps: list[Step]
    story: list[StoryEntry]
    actions: list[Action]


RunPage = Page[StepDetail | RunDetail, StepGroup]


@dataclass(frozen=True, slots=True)
class PrunedPage:
    """What is left of a task or run that retention removed: its last move, and the history of itself."""

    removal: Removal
    story: list[StoryEntry]
    looked_at: datetime


def read(connection: Connection[Any], id: int | UUID, *, story: int) -> RunPage:  # noqa: A002 - the word is SQL's
    """Read the page of a run or a step, with up to `story` entries of its history."""
    subject: StepDetail | RunDetail
    steps: list[StepGroup] = []
    if isinstance(id, int):
        subject = run_detail.step(connection, id)
        ended_by = run_detail.ended_by(connection, id) if subject.finished_at is not None else None
        reason = why(subject, run_detail.parents(connection, id) if subject.standing == "waiting" else [], ended_by)
    else:
        subject = run_detail.run(connection, id)
        steps = grouped(run_detail.run_steps(connection, id, each=SHOWN_OF_EACH))
        reason = why_run(subject, steps, run_detail.ended_by(connection, id) if subject.finished_at else None)
    entries = run_detail.story(connection, id, limit=story) if story else []
    return Page(subject, reason, steps, entries, actions(subject, run_detail.manual_events(connection, subject)))


def read_pruned(connection: Connection[Any], id: int | UUID, *, story: int) -> PrunedPage:  # noqa: A002
    """Read the page of a task or run that is gone, or raise NotFound."""
    removal = retention.removal(connection, id)
    if removal is None:
        raise NotFound(f"there is no task or run {id}", where=str(id), next="find the id with `holdfast runs list`")
    entries = run_detail.story(connection, id, limit=story, is_gone=True) if story else []
    return PrunedPage(removal, entries, clock(connection))


def pruned_document(page: PrunedPage) -> dict[str, Any]:
    """Return the page of what is gone as a mapping for JSON output."""
    removal = {name: value for name, value in asdict(page.removal).items() if name != "label"}
    story = [as_mapping(entry) for entry in page.story]
    return {"what": page.removal.label, **removal, "is_pruned": True, "story": story, "actions": [], "commands": []}


def as_document(page: RunPage) -> dict[str, Any]:
    """Return the page as a mapping for JSON output."""
    subject = page.subject
    return {
        **as_mapping(subject),
        "why": page.why,
        **({"steps": [_group(group) for group in page.steps]} if isinstance(subject, RunDetail) else {}),
        "story": [as_mapping(entry) for entry in page.story],
        "actions": [asdict(action) for action in page.actions],
    }


def _group(group: StepGroup) -> dict[str, Any]:
    steps = [{name: value for name, value in asdict(step).items() if name != "in_group"} for step in group.steps]
    return asdict(group) | {"steps": steps}


def actions(subject: StepDetail | RunDetail, events: Sequence[str]) -> list[Action]:
    """List the actions for a run or a step whose machine lets people cause these events."""
    possible = [Action(name, subject.id, effect) for name, effect in (ACTIONS[event] for event in events)]
    if isinstance(subject, StepDetail):
        return possible + unblocking(subject)
    if subject.finished_at is None and subject.halt in {"first", "paused"}:
        possible.append(Action("resume_run", subject.id, "let workers begin its steps again"))
    return possible


def unblocking(step: StepDetail) -> list[Action]:
    """Offer to resume the queue if a pause blocks a step, or to look at the limit that it waits for."""
    if step.limited_by is not None:
        return [Action("show_limit", step.limited_by, f"see who holds {step.limited_by} and what else waits for it")]
    if step.standing != "due" or step.queue_paused_at is None:
        return []
    return [Action("resume_queue", step.queue, f"resume claims from queue {step.queue}")]


def why(step: StepDetail, waits_for: Sequence[Parent], ended_by: StoryEntry | None = None) -> str:
    """Return a sentence on what a step waits for, or why it ended; `ended_by` is the move that ended it."""
    match step.standing:
        case "due":
            return _why_due(step)
        case "later" if step.due_at is not None:
            left = span_text(step.due_at - step.looked_at)
            return f"{_fault(step.error)}; retried in {left}" if step.failures else f"due in {left}"
        case "held" if step.lease_until is not None:
            more = step.lease_until - step.looked_at
            owner = f"{step.lease_owner}{_last_seen(step)}"
            if more < timedelta():
                return f"{owner} stopped responding: its lease ran out {span_text(more)} ago"
            return f"{owner} holds it, under a lease for {span_text(more)} more"
        case "waiting":
            names = ", ".join(f"{p.name or p.kind} ({p.id}, {p.state})" for p in waits_for)
            return f"waits for {step.waits} other {'step' if step.waits == 1 else 'steps'}: {names}"
        case "no handler" | "no move" | "parked" | "paused" | "limited" | "upstream paused" | "breaker open":
            return _why_parked(step)
        case _ if step.finished_at is not None:
            return _why_over(step, ended_by)
    return "not admitted: the run's window has not reached it, or the run was not queued or was stopped"


def _why_over(step: StepDetail, ended_by: StoryEntry | None) -> str:
    ago = "" if step.finished_at is None else f" {span_text(step.looked_at - step.finished_at)} ago"
    if step.outcome == "failed":
        return f"{_final(step)}: {_fault(step.error)}"
    if ended_by is not None and ended_by.what in {"cancelled", "resolved"}:
        return f"{_moved(ended_by)}{ago}"
    tries = f", on attempt {step.attempt}" if step.attempt > 1 else ""
    return f"{OVER.get(step.outcome or '', 'over')}{ago}{tries}"


def _final(step: StepDetail) -> str:
    """Return why there is no further try."""
    if step.tries is not None and 1 < step.tries <= step.failures:
        return f"failed on the last of its {step.tries} tries"
    return "failed for good, without a retry"


def _moved(entry: StoryEntry) -> str:
    by = f" by {entry.actor_kind} {entry.actor}" if entry.actor_kind else ""
    return f"{entry.what}{by}" + (f" ({entry.message})" if entry.message else "")


def _last_seen(step: StepDetail) -> str:
    seen = step.owner_seen_at
    return "" if seen is None else f" (last seen {span_text(step.looked_at - seen)} ago)"


def _fault(error: str | None) -> str:
    """Format a stored error as one line: its class and its message."""
    try:
        parts = json.loads(error or "null")
    except (RecursionError, ValueError):
        parts = error
    kind = str(parts.get("type") or "") if isinstance(parts, dict) else ""
    return ": ".join(filter(None, (kind, error_text(parts).partition("\n")[0]))) or "no error was given"


def _why_parked(step: StepDetail) -> str:
    if step.standing == "no handler":
        return f"no live worker serves {step.kind} on queue {step.queue}: start one that does"
    if step.standing == "paused":
        return f"run {step.run_id} is paused: workers begin its steps when it is resumed"
    if step.standing == "parked":
        return f"parked for {step.parked_for}"
    if step.limited_by is not None:
        return _why_limited(step)
    return f"its machine {step.machine} lacks a move; the last note of its history says which"


def _why_limited(step: StepDetail) -> str:
    if step.limited_until is not None and step.limited_until <= step.looked_at:
        return f"waited for {step.limited_by}, which admits steps again: {_why_due(step)}"
    opens = "" if step.limited_until is None else f", for {span_text(step.limited_until - step.looked_at)} more"
    if step.standing != "limited":
        return f"waits for {step.limited_by}: {step.standing}{opens}"
    if step.limit_concurrency is not None and step.limit_holders:
        holders = [str(holder) for holder in step.limit_holders]
        more = (step.limit_held or 0) - len(holders)
        named = [*holders, f"{more} more"] if more > 0 else holders
        listed = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
        return f"waits for {step.limited_by}: {step.limit_held} of {step.limit_concurrency} held by {listed}"
    return f"waits for {step.limited_by}: no slot or token is free{opens}"


def _why_due(step: StepDetail) -> str:
    if step.queue_paused_at is not None:
        reason = f": {step.queue_pause_reason}" if step.queue_pause_reason else ""
        return f"queue {step.queue} is paused by {step.queue_paused_by}{reason}"
    if step.live_workers == 0:
        return f"due, and no live worker serves {step.kind} on queue {step.queue}: start one that does"
    workers = "1 worker serves it" if step.live_workers == 1 else f"{step.live_workers} workers serve it"
    return f"due since {span_text(step.looked_at - (step.due_at or step.looked_at))}; {workers}"


def why_run(run: RunDetail, steps: Sequence[StepGroup], ended_by: StoryEntry | None) -> str:
    """Return a sentence on the state of a run, or why it ended."""
    halted = _halted(run)
    if run.moving is not None and run.halt is None:
        return f"being {run.moving}: its steps follow in chunks"
    if run.finished_at is None:
        unadmitted = f", {run.unadmitted} not admitted" if run.unadmitted else ""
        return f"{halted}{run.live} steps live, {run.waiting} waiting for others{unadmitted}"
    ago = f" {span_text(run.looked_at - run.finished_at)} ago"
    if run.outcome != "succeeded" and ended_by is not None and ended_by.what in {"cancelled", "resolved"}:
        return f"{_moved(ended_by)}{ago}"
    dead = next((step for group in steps if group.outcome == "failed" for step in group.steps), None)
    if run.outcome != "succeeded" and dead is not None:
        more = f", and {run.failed - 1} more" if run.failed > 1 else ""
        return f"step {dead.name or dead.kind} failed: {(dead.error or '').partition(chr(10))[0]}{more}"
    return f"{OVER.get(run.outcome or '', 'over')}{ago}"


def _halted(run: RunDetail) -> str:
    """Return who halted a run and why, before what its steps do."""
    if run.halt is None or run.finished_at is not None:
        return ""
    what = {"first": "paused after its first steps", "paused": "paused", "stopped": "being stopped"}[run.halt]
    reason = f": {run.halt_reason}" if run.halt_reason and run.halt != "first" else ""
    return f"{what} by {run.halted_by}{reason}; "


def grouped(steps: Sequence[RunStep]) -> list[StepGroup]:
    """Group the steps of a run by state, in the given order: the failed come first."""
    groups = [list(group) for _, group in groupby(steps, key=lambda step: (step.state, step.finished_at is None))]
    return [StepGroup(some[0].state, some[0].phase, some[0].outcome, some[0].in_group, some) for some in groups]


def span_text(length: timedelta) -> str:
    """Format a span for people, to about three digits."""
    seconds = abs(length.total_seconds())
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:.3g} s"
