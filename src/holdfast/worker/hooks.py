"""Tells whoever asked what a worker does and what became of it: best effort, beside the worker, never in its way.

An outbox will carry these one day; until then a notification that fails is counted and logged, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from holdfast.connections.worker import Answers
from holdfast.kernel.call import Call
from holdfast.models import ClaimedStep, Ending
from holdfast.notify import BackgroundNotifier, Count, flush_all
from holdfast.worker.attempt import Attempt
from holdfast.worker.claimer import Claimer
from holdfast.worker.metrics import Meters
from holdfast.worker.settler import Settler

Hook = Callable[[Ending], Any]


class Watcher(Protocol):
    """Follows what workers do with the steps of one face. Each of these returns at once, and raises nothing."""

    @property
    def face(self) -> str:
        """The face whose steps it follows."""

    def query(self, worker: str, step_ids: list[int]) -> Call[Any] | None:
        """Give the call to make with a settle of steps, in its transaction; None where there is nothing to ask."""

    def claimed(self, worker: str, steps: list[ClaimedStep], count: Count) -> None:
        """Take note of steps that were claimed."""

    def begun(self, step: ClaimedStep, count: Count) -> None:
        """Take note of a handler that is about to be called."""

    def ended(self, worker: str, endings: list[Ending], answers: list[Any] | None, count: Count) -> None:
        """Take note of what became of steps; `answers` to the question, None where the database gave none."""

    def flush(self, seconds: float) -> None:
        """Wait until what was noted is told, but not for ever."""


class Hooks:
    """The functions that are told of each ending, and the watchers, one per face at most."""

    def __init__(self) -> None:
        self._hooks: list[BackgroundNotifier[Ending]] = []
        self._watchers: dict[str, Watcher] = {}

    def add(self, hook: Hook) -> None:
        """Tell one more of endings."""
        self._hooks.append(BackgroundNotifier(hook, "hook"))

    def watch(self, watcher: Watcher) -> None:
        """Let a watcher follow the steps of its face, instead of the one that did so far."""
        self._watchers[watcher.face] = watcher

    def wire(self, worker: str, claimer: Claimer, settler: Settler, meters: Meters) -> None:
        """Let a worker tell. Where nobody listens nothing is wired, and it does nothing for it."""

        def count(ok: bool, /) -> None:
            meters.notified(ok=ok)

        if self._watchers:
            settler.asks = lambda ended: self._queries(worker, ended)
            claimer.claimed = lambda steps: self._tell_claimed(worker, steps, claimer.face_of, count)
            claimer.begun = lambda step: self._tell_begun(step, claimer.face_of, count)
        if self._watchers or self._hooks:
            settler.told = lambda endings, answers: self._tell(worker, endings, answers, count)

    def flush(self, seconds: float) -> None:
        """Wait for what is under way, but not for ever: a hook may hang."""
        flush_all([*self._hooks, *self._watchers.values()], seconds)

    def _queries(self, worker: str, ended: list[Attempt]) -> dict[str, Call[Any]]:
        """Ask each watcher what to ask about the steps of its own face."""
        queries = {}
        for face, watcher in self._watchers.items():
            step_ids = [one.step.step_id for one in ended if one.handler.face == face]
            if step_ids and (query := watcher.query(worker, step_ids)) is not None:
                queries[face] = query
        return queries

    def _tell_claimed(self, worker: str, steps: list[ClaimedStep], face_of: Callable[[str], str], count: Count) -> None:
        for face, watcher in self._watchers.items():
            if own := [step for step in steps if face_of(step.kind) == face]:
                watcher.claimed(worker, own, count)

    def _tell_begun(self, step: ClaimedStep, face_of: Callable[[str], str], count: Count) -> None:
        if (watcher := self._watchers.get(face_of(step.kind))) is not None:
            watcher.begun(step, count)

    def _tell(self, worker: str, endings: list[Ending], answers: Answers, count: Count) -> None:
        for ending in endings:
            for hook in self._hooks:
                hook.tell(ending, count)
        for face, watcher in self._watchers.items():
            if own := [ending for ending in endings if ending.face == face]:
                watcher.ended(worker, own, answers.get(face, []), count)
