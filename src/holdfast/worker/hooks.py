"""Tells whoever asked what a worker does and what became of it: best effort, beside the worker, never in its way.

An outbox will carry these one day; until then a notification that fails is counted and logged, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from holdfast.kernel.aside import Aside, Count, flush_all
from holdfast.kernel.call import Call
from holdfast.models import ClaimedStep, Ending
from holdfast.worker.intake import Intake
from holdfast.worker.meters import Meters
from holdfast.worker.settle import Settler

Hook = Callable[[Ending], Any]


class Watcher(Protocol):
    """Follows what workers do with steps of runs. Each of these returns at once, and raises nothing."""

    def question(self, worker: str, step_ids: list[int]) -> Call[Any] | None:
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
    """The functions that are told of each ending, and who follows it all."""

    def __init__(self) -> None:
        self._hooks: list[Aside[Ending]] = []
        self.watcher: Watcher | None = None

    def add(self, hook: Hook) -> None:
        """Tell one more of endings."""
        self._hooks.append(Aside(hook, "hook"))

    def wire(self, worker: str, intake: Intake, settler: Settler, meters: Meters) -> None:
        """Let a worker tell. Where nobody listens nothing is wired, and it does nothing for it."""
        watcher = self.watcher

        def count(ok: bool, /) -> None:
            meters.notified(ok=ok)

        if watcher is not None:
            settler.asks = lambda step_ids: watcher.question(worker, step_ids)
            intake.claimed = lambda steps: watcher.claimed(worker, steps, count)
            intake.begun = lambda step: watcher.begun(step, count)
        if watcher is not None or self._hooks:
            settler.told = lambda endings, answers: self._tell(worker, endings, answers, count)

    def flush(self, seconds: float) -> None:
        """Wait for what is under way, but not for ever: a hook may hang."""
        flush_all(self._hooks, seconds)
        if self.watcher is not None:
            self.watcher.flush(seconds)

    def _tell(self, worker: str, endings: list[Ending], answers: list[Any] | None, count: Count) -> None:
        for ending in endings:
            for hook in self._hooks:
                hook.tell(ending, count)
        of_runs = [ending for ending in endings if ending.run_id is not None]
        if self.watcher is not None and of_runs:
            self.watcher.ended(worker, of_runs, answers, count)
