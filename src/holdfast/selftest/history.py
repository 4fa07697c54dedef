"""The judge: what handlers wrote down, what the journal says and what effects there are must tell one story.

The file knows what the database cannot: an attempt that was never accepted.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from holdfast.handlers.context import Ctx
from holdfast.models import JournalEntry

ACCEPTED = {"succeeded", "retried", "failed", "snoozed", "continued"}
KEPT = {"succeeded", "continued"}  # what the attempt did in its transaction is committed with these
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


def write(folder: Path, ctx: Ctx, what: str, **more: object) -> None:
    """Add a line; by one write to a file that is only appended to, so that lines of many processes do not mix."""
    line = {"what": what, "kind": ctx.kind, "step": ctx.step_id, "lease": ctx.lease_id, "attempt": ctx.attempt}
    line |= {"worker": ctx.worker, "pid": os.getpid(), "at": time.monotonic(), **more}
    with (folder / "history").open("ab", buffering=0) as history:
        history.write(json.dumps(line).encode() + b"\n")


def lines(folder: Path, what: str | None = None) -> list[Line]:
    """Read what handlers wrote, in order; a line that its writer was killed in does not count."""
    file = folder / "history"
    whole = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
    written = [Line(**json.loads(line)) for line in whole]
    return [line for line in written if what is None or line.what == what]


@dataclass(frozen=True)
class Evidence:
    """What there is to judge by.

    The journal in its order, how many tasks are there, which of them have an effect with each attempt that is kept,
    which attempts had an effect or gave the result that is kept (each as step and lease), what handlers wrote, and
    which invariants do not hold.
    """

    story: Sequence[JournalEntry]
    kept: int
    paying: set[int]
    effects: Sequence[tuple[int, int]]
    results: Sequence[tuple[int, int]]
    written: Sequence[Line]
    broken: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """What a history comes to; sound when there is nothing in it but what was started."""

    lost: int
    twice: int
    strangers: int = 0
    broken: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether nothing speaks against it."""
        return self == Verdict(0, 0)


def judge(found: Evidence, *, started: int, failed: int = 0) -> Verdict:
    """Find what was lost or accepted twice; `failed` of those that were acknowledged were meant to fail.

    Lost is an acknowledged task that is not there or did not succeed, and an accepted attempt without its effect. Twice
    is a second success of a task, an accepted attempt that overlaps another, and what an attempt left behind that was
    not accepted: a second effect, or the result.
    """
    successes = [(entry.step_id, entry.lease_id) for entry in found.story if entry.event == "succeeded"]
    done = {step for step, _ in successes}
    paid = {
        (entry.step_id, entry.lease_id)
        for entry in found.story
        if entry.event in KEPT and entry.step_id in found.paying
    }
    overlaps = len(leases_overlap(found.story)) + len(attempts_overlap(found.story, found.written))
    unpaid, unearned = paid - {*found.effects}, len(found.effects) - len(paid & {*found.effects})
    return Verdict(
        lost=max(0, started - failed - len(done)) + len(unpaid),
        twice=len(successes) - len(done) + unearned + overlaps + len({*found.results} - {*successes}),
        strangers=found.kept - started,
        broken=found.broken,
    )


def leases_overlap(story: Sequence[JournalEntry]) -> list[JournalEntry]:
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


def attempts_overlap(story: Sequence[JournalEntry], written: Sequence[Line]) -> list[tuple[Line, Line]]:
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


def taken_early(story: Sequence[JournalEntry], lease: timedelta) -> list[JournalEntry]:
    """Find leases that were taken from their holder in the first quarter of their length; times are the database's.

    Not all of it: a lease counts from the beginning of its claim, and the journal has the claim's end.
    """
    granted = {entry.lease_id: entry.at for entry in story if entry.event == "claimed"}
    return [entry for entry in story if entry.event == "expired" and entry.at - granted[entry.lease_id] < lease / 4]
