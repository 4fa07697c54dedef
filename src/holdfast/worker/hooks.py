"""Calls watchers with what a worker does: best effort, beside the worker, never in its way.

An outbox will carry these one day; until then a notification that fails is counted and logged, and changes nothing.
"""

from __future__ import annotations

from typing import Any, Protocol

from holdfast.connections.worker import Answers
from holdfast.handlers.registry import Registry
from holdfast.kernel.call import Call
from holdfast.models import ClaimedStep, Ending
from holdfast.notify import Count, flush_all
from holdfast.worker.attempt import Attempt
from holdfast.worker.metrics import Meters


class Watcher(Protocol):
    """Follows what workers do with the steps of one face. Each of these returns at once, and raises nothing."""

    @property
    def face(self) -> str:
        """The face whose steps it follows."""

    def query(self, worker: str, step_ids: list[int]) -> Call[Any] | None:
        """Return the query to run in the transaction of a settle; None where there is nothing to ask."""

    def claimed(self, worker: str, steps: list[ClaimedStep], count: Count) -> None:
        """Take note of steps that were claimed."""

    def begun(self, step: ClaimedStep, count: Count) -> None:
        """Take note of a handler that is about to be called."""

    def ended(self, worker: str, endings: list[Ending], answers: list[Any] | None, count: Count) -> None:
        """Take note of what became of steps; `answers` are the rows of its query, None if the database refused it."""

    def flush(self, seconds: float) -> None:
        """Wait until what was noted is delivered, but no longer than that."""


class Hooks:
    """The watchers of an app, at most one per face."""

    def __init__(self) -> None:
        self.watchers: dict[str, Watcher] = {}

    def watch(self, watcher: Watcher) -> None:
        """Let a watcher follow the steps of its face, instead of the one that did so far."""
        self.watchers[watcher.face] = watcher


class WorkerHooks:
    """The watchers of an app, as one worker calls them. Where there are none, it does nothing for them."""

    def __init__(self, hooks: Hooks, worker: str, registry: Registry, meters: Meters) -> None:
        self._watchers = hooks.watchers
        self._worker = worker
        self._faces = {handler.kind: handler.face for handler in registry}
        self._meters = meters

    @property
    def is_watched(self) -> bool:
        """Whether a watcher follows some of the steps."""
        return bool(self._watchers)

    def queries(self, attempts: list[Attempt]) -> dict[str, Call[Any]]:
        """Return by face the query of its watcher about its own steps."""
        queries = {}
        for face, watcher in self._watchers.items():
            step_ids = [attempt.step.step_id for attempt in attempts if attempt.handler.face == face]
            if step_ids and (query := watcher.query(self._worker, step_ids)) is not None:
                queries[face] = query
        return queries

    def claimed(self, steps: list[ClaimedStep]) -> None:
        """Pass on to each watcher the steps of its face that were claimed."""
        for face, watcher in self._watchers.items():
            if own := [step for step in steps if self._faces[step.kind] == face]:
                watcher.claimed(self._worker, own, self._count)

    def begun(self, step: ClaimedStep) -> None:
        """Pass on a step whose handler is about to be called."""
        if (watcher := self._watchers.get(self._faces[step.kind])) is not None:
            watcher.begun(step, self._count)

    def ended(self, endings: list[Ending], answers: Answers) -> None:
        """Pass on what became of steps, with the rows of each watcher's query."""
        for face, watcher in self._watchers.items():
            if own := [ending for ending in endings if ending.face == face]:
                watcher.ended(self._worker, own, answers.get(face, []), self._count)

    def flush(self, seconds: float) -> None:
        """Wait for deliveries under way, but no longer than that: a subscriber may hang."""
        flush_all(self._watchers.values(), seconds)

    def _count(self, ok: bool, /) -> None:
        self._meters.notified(ok=ok)
