"""The worker's own state machine (document 004), checked like those of rows: a move that is not listed is a bug.

It has two kinds of path. The worker itself cycles through startup, connecting, recovery, polling, backoff and idle.
Each task goes through polling, claiming, processing, reporting and back to polling, many of them at once. An orderly
stop leads to draining and stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Literal, get_args

from holdfast.errors import HoldfastError

State = Literal[
    "startup", "connecting", "recovery", "polling", "claiming", "processing", "reporting_success", "reporting_failure",
    "backoff", "idle", "error_wait", "draining", "stopped",
]  # fmt: skip
STATES: tuple[State, ...] = get_args(State)

MOVES: frozenset[tuple[State, State]] = frozenset(
    {
        ("startup", "connecting"),
        ("connecting", "recovery"),
        ("recovery", "polling"),
        ("polling", "claiming"),
        ("polling", "backoff"),
        ("backoff", "idle"),
        ("idle", "connecting"),
        ("claiming", "processing"),
        ("claiming", "polling"),
        ("processing", "reporting_success"),
        ("processing", "reporting_failure"),
        ("reporting_success", "polling"),
        ("reporting_failure", "polling"),
        ("error_wait", "connecting"),
        ("draining", "stopped"),
        *((state, "error_wait") for state in STATES if state not in {"error_wait", "draining", "stopped"}),
        *((state, "draining") for state in STATES if state not in {"draining", "stopped"}),
    }
)


class IllegalMove(HoldfastError):
    """The worker tried a move that its machine does not list."""


Watch = Callable[[State, State, int], None]


class States:
    """The worker's state, how many of its tasks are in each state, and how often each move was made."""

    def __init__(self, watch: Watch | None = None) -> None:
        self.worker: State = "startup"
        self.tasks: Counter[State] = Counter()
        self.moves: Counter[tuple[State, State]] = Counter()
        self._watch = watch

    def enter(self, to: State) -> None:
        """Move the worker; do nothing if it is already there."""
        if to == self.worker:
            return
        self._note(self.worker, to, 1)
        self.worker = to

    def pass_tasks(self, count: int, *path: State) -> None:
        """Move tasks along a path, move by move."""
        if count == 0:
            return
        for come, to in pairwise(path):
            self._note(come, to, count)
        self.tasks[path[0]] -= count if path[0] != "polling" else 0
        self.tasks[path[-1]] += count if path[-1] != "polling" else 0

    def shown(self, *, is_full: bool) -> State:
        """Return the state to show: a worker without room for more is processing."""
        return "processing" if self.worker == "polling" and is_full else self.worker

    def reported(self, *, in_flight: int, found_nothing: bool) -> State:
        """Return the state to store in its row, which is not the recovery that it is in while it writes."""
        if self.worker in {"error_wait", "draining", "stopped"}:
            return self.worker
        if in_flight:
            return "processing"
        return "idle" if found_nothing else "polling"

    def _note(self, come: State, to: State, count: int) -> None:
        if (come, to) not in MOVES:
            raise IllegalMove(
                f"a worker cannot go from {come} to {to}", next="this is a bug in Holdfast, please report it"
            )
        self.moves[come, to] += count
        if self._watch is not None:
            self._watch(come, to, count)
