"""One rescued task's story, told from the journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg import Connection

from holdfast.reads import demo
from holdfast.reads.demo import Move, StepRecord


@dataclass(frozen=True, slots=True)
class Line:
    """One event of a task."""

    at: datetime
    since: timedelta
    what: str
    state: str


def choose(evidence: Sequence[StepRecord]) -> StepRecord | None:
    """Choose the task with the shortest story that was rescued and then completed."""
    rescued = [one for one in evidence if one.rescues and one.successes]
    return min(rescued, key=lambda one: (one.claims, one.step_id), default=None)


def tell(connection: Connection[Any], step_id: int) -> list[Line]:
    """Read a step's story."""
    return in_words(demo.moves(connection, step_id))


def in_words(moves: Sequence[Move]) -> list[Line]:
    """Put each move into words; a lease's number tells whose it was."""
    owners = {move.lease_id: _short(move.actor) for move in moves if move.event == "claimed"}
    return [Line(move.at, move.at - moves[0].at, _sentence(move, owners), move.to_state) for move in moves]


def _sentence(move: Move, owners: dict[int, str]) -> str:
    match move.event:
        case "created":
            return "started"
        case "claimed":
            return f"claimed by {_short(move.actor)} under lease {move.lease_id}"
        case "expired":
            return f"lease {move.lease_id} of {owners.get(move.lease_id, 'a worker')} ran out: recovered"
        case "succeeded":
            return f"done by {_short(move.actor)}; effect and outcome in one commit"
        case event if move.error is not None:
            return f"{event}: {move.error}"
        case event:
            return f"{event} by {_short(move.actor)}"


def _short(worker: str) -> str:
    return worker.partition("/")[0]
