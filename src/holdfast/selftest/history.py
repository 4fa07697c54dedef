"""The judge: the handlers' records, the journal and the effects must agree.

The handlers' file has what the database cannot have: attempts that were never accepted.
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
KEPT = {"succeeded", "continued"}  # events that commit the attempt's own transaction
OVER = ACCEPTED | {"released", "expired", "cancelled"}


@dataclass(frozen=True)
class Line:
    """A handler's record; `at` is the machine's monotonic clock, the same in all its processes."""

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
    """Append a line with one write, so that lines of many processes do not mix."""
    line = {"what": what, "kind": ctx.kind, "step": ctx.step_id, "lease": ctx.lease_id, "attempt": ctx.attempt}
    line |= {"worker": ctx.worker, "pid": os.getpid(), "at": time.monotonic(), **more}
    with (folder / "history").open("ab", buffering=0) as history:
        history.write(json.dumps(line).encode() + b"\n")


def lines(folder: Path, what: str | None = None) -> list[Line]:
    """Read the handlers' records in order; an incomplete line of a killed process does not count."""
    file = folder / "history"
    whole = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
    written = [Line(**json.loads(line)) for line in whole]
    return [line for line in written if what is None or line.what == what]


@dataclass(frozen=True)
class Evidence:
    """The evidence.

    The journal in order, how many tasks exist, which of them have an effect per accepted attempt, which attempts had
    an effect or produced the stored result (each as step and lease), the handlers' records, and the broken
    invariants.
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
    """The verdict on a history; it is sound if it contains only what was started."""

    lost: int
    twice: int
    strangers: int = 0
    broken: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Return whether nothing was found."""
        return self == Verdict(0, 0)


def judge(found: Evidence, *, started: int, failed: int = 0) -> Verdict:
    """Find what was lost or accepted twice; `failed` of the acknowledged tasks were meant to fail.

    Lost: an acknowledged task that does not exist or did not succeed, or an accepted attempt without its effect.
    Twice: a second success of a task, an accepted attempt that overlaps another, or an effect or result of an attempt
    that was not accepted.
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
    """Find claims of a step that was still held, because its previous lease had not ended in the journal."""
    held: dict[int | None, int | None] = {}
    claims = []
    for entry in story:
        if entry.event == "claimed":
            if held.get(entry.step_id) is not None:
                claims.append(entry)
            held[entry.step_id] = entry.lease_id
        elif entry.event in OVER:
            held[entry.step_id] = None
    return claims


def attempts_overlap(story: Sequence[JournalEntry], written: Sequence[Line]) -> list[tuple[Line, Line]]:
    """Find accepted attempts that overlap another accepted attempt of the same step."""
    accepted = {entry.lease_id for entry in story if entry.event in ACCEPTED}
    spans: dict[int, dict[int, list[Line]]] = {}
    for line in written:
        if line.lease in accepted:
            spans.setdefault(line.step, {}).setdefault(line.lease, []).append(line)
    pairs: list[tuple[Line, Line]] = []
    for attempts in spans.values():
        ordered: Any = sorted(attempts.values(), key=lambda attempt: attempt[0].at)
        pairs += [(one[-1], other[0]) for one, other in pairwise(ordered) if one[-1].at > other[0].at]
    return pairs


def taken_early(story: Sequence[JournalEntry], lease: timedelta) -> list[JournalEntry]:
    """Find leases that were taken from their holder in the first quarter of their length; times are the database's.

    Only a quarter, because a lease counts from the start of its claim, and the journal has the claim's end.
    """
    granted = {entry.lease_id: entry.at for entry in story if entry.event == "claimed"}
    return [entry for entry in story if entry.event == "expired" and entry.at - granted[entry.lease_id] < lease / 4]
