"""The checker: what handlers wrote down, and what the journal says, must tell one story."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from holdfast.models import JournalEntry
from holdfast.testing import journal
from kernel.steps import violations
from scenarios.crew import Database

ACCEPTED = {"succeeded", "retried", "failed", "snoozed", "continued"}
OVER = ACCEPTED | {"released", "expired", "cancelled"}
# Kinds that have an effect in the transaction that completes them, or that ends a page of them.
PAYING = {"deposit", "adeposit", "deposit_apart", "deposit_once", "turn_pages"}
PAID = {"succeeded", "continued"}
# Kinds whose result is their lease number.
TELLING = PAYING | {"doze", "wait", "await_gate", "wait_apart", "remark", "stay", "stumble"}
STEPS = "select id, kind, result from holdfast.steps"
EFFECTS = "select step_id, lease_id from public.effects"


@dataclass(frozen=True)
class Line:
    """What a handler wrote; `at` is the machine's monotonic clock, the same in all its processes."""

    what: str
    kind: str
    step: int
    lease: int
    attempt: int
    worker: str
    pid: int
    at: float
    by: str = ""
    reason: str | None = None
    note: str = ""


def lines(folder: Path, what: str | None = None) -> list[Line]:
    """Read what handlers wrote, in order; a line that its writer was killed in does not count."""
    file = folder / "history"
    whole = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
    written = [Line(**json.loads(line)) for line in whole]
    return [line for line in written if what is None or line.what == what]


@dataclass(frozen=True)
class Verdict:
    """What a history comes to; sound when there is nothing in it but what was started."""

    lost: int
    twice: int
    strangers: int = 0
    broken: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        return self == Verdict(0, 0)


def judge(database: Database, folder: Path, *, started: int, failed: int = 0) -> Verdict:
    """Find what was lost or accepted twice: by the journal, by the handlers' own file, and by the effects they had.

    Lost is an acknowledged task that is not there or did not succeed, and a success without its effect. Twice is a
    second success of a task, an accepted attempt that overlaps another, a second effect, and an effect or a result of
    an attempt that did not hold the task when it succeeded.
    """
    with database.connection() as db:
        story = journal(db)
        steps = db.execute(STEPS).fetchall()
        broken = tuple(map(str, violations(db)))
        effects = db.execute(EFFECTS).fetchall()
    successes = [(entry.step_id, entry.lease_id) for entry in story if entry.event == "succeeded"]
    holders = dict(successes)
    paying = {step for step, kind, _ in steps if kind in PAYING}
    paid = {(entry.step_id, entry.lease_id) for entry in story if entry.event in PAID and entry.step_id in paying}
    told = [(step, result) for step, kind, result in steps if kind in TELLING and step in holders]
    overlaps = len(leases_overlap(story)) + len(attempts_overlap(story, lines(folder)))
    again = len(successes) - len(holders) + len(effects) - len(paid & set(effects))
    return Verdict(
        lost=max(0, started - failed - len(holders)) + len(paid - set(effects)),
        twice=again + overlaps + sum(result != holders[step] for step, result in told),
        strangers=len(steps) - started,
        broken=broken,
    )


def leases_overlap(story: list[JournalEntry]) -> list[JournalEntry]:
    """Find claims of a step that was still held: its lease before had not come to an end in the journal."""
    held: dict[int | None, int | None] = {}
    found = []
    for entry in story:
        if entry.event == "claimed":
            if held.get(entry.step_id) is not None:
                found.append(entry)
            held[entry.step_id] = entry.lease_id
        elif entry.event in OVER:
            held[entry.step_id] = None
    return found


def attempts_overlap(story: list[JournalEntry], written: list[Line]) -> list[tuple[Line, Line]]:
    """Find attempts that were accepted although another accepted one of the same step was under way."""
    accepted = {entry.lease_id for entry in story if entry.event in ACCEPTED}
    spans: dict[int, dict[int, list[Line]]] = {}
    for line in written:
        if line.lease in accepted:
            spans.setdefault(line.step, {}).setdefault(line.lease, []).append(line)
    found: list[tuple[Line, Line]] = []
    for attempts in spans.values():
        ordered: Any = sorted(attempts.values(), key=lambda attempt: attempt[0].at)
        found += [(one[-1], other[0]) for one, other in pairwise(ordered) if one[-1].at > other[0].at]
    return found
