"""How a run or a step stands, why, what happened to it, and what may be done about it now."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

from psycopg import Connection

from holdfast.reads import run_detail
from holdfast.reads.run_detail import Parent, RunLook, RunStep, StepLook, StoryEntry

SHOWN_OF_EACH = 5  # steps of a run, of each state


@dataclass(frozen=True, slots=True)
class Found:
    """All that a page shows."""

    subject: StepLook | RunLook
    why: str
    steps: list[RunStep]
    story: list[StoryEntry]
    commands: list[str]


def gather(
    connection: Connection[Any],
    id: int | UUID,  # noqa: A002 - the word is the same in SQL
    *,
    story: int,
    commands: Mapping[str, str],
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
            left = span_text(step.due_at - step.looked_at)
            return f"tried again in {left}" if step.failures else f"to be done in {left}"
        case "held" if step.lease_until is not None:
            more = step.lease_until - step.looked_at
            if more < timedelta():
                return f"{step.lease_owner} fell silent: its lease ran out {span_text(more)} ago"
            return f"{step.lease_owner} has it, under a lease for {span_text(more)} more"
        case "waiting":
            names = ", ".join(f"{p.name or p.kind} ({p.id}, {p.state})" for p in waits_for)
            return f"waits for {step.waits} other steps: {names}"
        case "no handler" | "set aside" | "parked":
            return _why_parked(step)
        case _ if step.finished_at is not None:
            return f"over since {span_text(step.looked_at - step.finished_at)}"
    return "not let in yet"


def _why_parked(step: StepLook) -> str:
    if step.standing == "no handler":
        return f"no live worker serves {step.kind} on queue {step.queue}: start one that does"
    if step.standing == "parked":
        return f"parked for {step.parked_for}"
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
        return f"over since {span_text(run.looked_at - run.finished_at)}"
    return f"{run.live} steps live, {run.waiting} waiting for others"


def grouped(steps: Sequence[RunStep]) -> list[list[RunStep]]:
    """Put the steps of a run together by state, in the order given: the failed come first."""
    return [list(group) for _, group in groupby(steps, key=lambda step: (step.state, step.finished_at is None))]


def span_text(length: timedelta) -> str:
    """Write a span for people, to three figures or so."""
    seconds = abs(length.total_seconds())
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:.3g} s"
