"""The checker: what handlers wrote down, and what the journal says, must tell one story."""

from __future__ import annotations

import json
from collections import Counter
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


def check(database: Database, folder: Path, *, started: int) -> None:
    """Prove: nothing acknowledged is lost, nothing is accepted twice, no two accepted attempts of a step overlap."""
    with database.connection() as db:
        story = journal(db)
        (kept,) = db.execute("select count(*) from holdfast.steps").fetchone() or (0,)
        assert violations(db) == []
    assert kept == started
    accepted = Counter(entry.step_id for entry in story if entry.event == "succeeded")
    assert (len(accepted), accepted.total()) == (started, started)
    assert leases_overlap(story) == []
    assert attempts_overlap(story, lines(folder)) == []


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
