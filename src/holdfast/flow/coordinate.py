"""Turns what workers do with steps of flows into events and decisions, in a thread beside them; asks no more than once a pass.

A pass is a settled batch. What it decided for its tasks is asked in its own transaction, and that one answer serves every
event and decision of the pass; the next settle asks anew. Where nobody listens none of this is wired.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

from holdfast.flow import calls
from holdfast.flow.backoff import Backoff
from holdfast.flow.calls import SettledTask, TaskContext, TouchedTask
from holdfast.flow.events import Event
from holdfast.flow.finalize import Decision, Durable, Strategy, decide
from holdfast.flow.subscribers import Subscribers, title_of
from holdfast.kernel.aside import Aside, Count
from holdfast.kernel.call import Call
from holdfast.kernel.door import Door
from holdfast.models import ClaimedStep, Ending, Fail, Retry

K = TypeVar("K")
V = TypeVar("V")
MOST_KEPT = 10_000
_CONTEXT = [field.name for field in fields(TaskContext)]


@dataclass(frozen=True, slots=True)
class Claimed:
    worker: str
    steps: list[ClaimedStep]
    count: Count


@dataclass(frozen=True, slots=True)
class Begun:
    step: ClaimedStep
    at: datetime
    count: Count


@dataclass(frozen=True, slots=True)
class Ended:
    worker: str
    endings: list[Ending]
    tasks: list[SettledTask] | None
    count: Count


@dataclass(frozen=True, slots=True)
class Handed:
    decision: Decision
    count: Count


class Coordinator:
    """Tells subscribers what becomes of tasks, hands what goes on to a strategy, and keeps a log of what was decided."""

    def __init__(self, subscribers: Subscribers, backoff_of: Callable[[Any], Backoff], door: Door) -> None:
        self.strategy: Strategy = Durable()
        self.decisions: deque[Decision] = deque(maxlen=MOST_KEPT)
        self._subscribers = subscribers
        self._backoff_of = backoff_of
        self._door = door
        self._notes: Aside[Claimed | Begun | Ended] = Aside(self._heed, "coordinator")
        self._handed: Aside[Handed] = Aside(self._hand_on, "strategy")
        self._names: OrderedDict[int, str] = OrderedDict()  # of steps in their tasks
        self._told: OrderedDict[tuple[str, UUID], int] = OrderedDict()  # the last move of a task that was told

    def question(self, worker: str, step_ids: list[int]) -> Call[Any]:
        """Ask where the tasks of settled steps stand."""
        return calls.settled_tasks(worker, step_ids)

    def claimed(self, worker: str, steps: list[ClaimedStep], count: Count) -> None:
        """Take note of steps that were claimed."""
        if of_runs := [step for step in steps if step.run_id is not None]:
            self._notes.tell(Claimed(worker, of_runs, count), _unless_good(count))

    def begun(self, step: ClaimedStep, count: Count) -> None:
        """Take note of a handler that is about to be called."""
        if step.run_id is not None:
            self._notes.tell(Begun(step, datetime.now(UTC), count), _unless_good(count))

    def ended(self, worker: str, endings: list[Ending], answers: list[Any] | None, count: Count) -> None:
        """Take note of what became of steps."""
        self._notes.tell(Ended(worker, endings, answers, count), _unless_good(count))

    def flush(self, seconds: float) -> None:
        """Wait until all is told, but not for ever."""
        for each in (self._notes, self._handed, self._subscribers):
            each.flush(seconds)

    def _heed(self, note: Claimed | Begun | Ended) -> None:
        match note:
            case Claimed():
                self._tell_claimed(note)
            case Begun():
                self._tell_begun(note)
            case Ended():
                self._tell_ended(note)

    def _tell_claimed(self, note: Claimed) -> None:
        steps = {step.step_id: step for step in note.steps}
        now = datetime.now(UTC)
        for task in self._door.make(calls.touched_tasks(note.worker, list(steps))):
            self._tell_moves(task, note.worker, now, note.count, {"started"})
            taken = {int(step_id): str(facts["name"]) for step_id, facts in task.steps.items()}
            names = list(taken.values())
            self._publish("workflow.viable_steps_discovered", now, task.task_id, None, note.count, steps=names)
            for step_id, name in sorted(taken.items()):
                _keep(self._names, step_id, name)
                said = _said(name, steps[step_id])
                self._publish("step.execution_requested", now, task.task_id, step_id, note.count, **said)

    def _tell_begun(self, note: Begun) -> None:
        step = note.step
        name = self._names.get(step.step_id)
        if name is not None and step.run_id is not None:  # else it is no step of a flow
            said = _said(name, step)
            self._publish("step.before_handle", note.at, step.run_id, step.step_id, note.count, **said)

    def _tell_ended(self, note: Ended) -> None:
        if note.tasks is None:
            raise LookupError("where the tasks stood by this settle was not answered; the journal has what happened")
        endings = {ending.step_id: ending for ending in note.endings}
        for task in note.tasks:
            for step_id, facts in task.steps.items():
                ending = endings.get(int(step_id))
                self._names.pop(int(step_id), None)
                if ending is not None:
                    self._tell_ending(task, ending, facts, note.count)
            self._finalize(task, note)

    def _tell_ending(self, task: SettledTask, ending: Ending, facts: dict[str, Any], count: Count) -> None:
        said = _said(str(facts["name"]), ending)
        budget = {"attempts": facts["attempts"], "retry_limit": facts["retry_limit"]}

        def tell(name: str, **payload: Any) -> None:
            self._publish(name, task.at, task.task_id, ending.step_id, count, **said, **payload)

        match ending.event:
            case "succeeded":
                tell("step.completed", execution_duration=ending.took)
            case "retried":
                tell("step.failed", execution_duration=ending.took, error=_error(ending), will_retry=True)
                tell("step.retry_requested", **budget)
                due_at = datetime.fromisoformat(facts["next_retry_at"]) if facts["next_retry_at"] else task.at
                if due_at > task.at:
                    tell("step.backoff", next_retry_at=due_at, delay=due_at - task.at)
            case "failed":
                tell("step.failed", execution_duration=ending.took, error=_error(ending), will_retry=False)
                if isinstance(ending.outcome, Retry):
                    tell("step.max_retries_reached", **budget)

    def _finalize(self, task: SettledTask, note: Ended) -> None:
        def tell(name: str, **payload: Any) -> None:
            self._publish(name, task.at, task.task_id, None, note.count, **payload)

        status = task.execution_status
        if task.ready_steps == 0 and task.in_progress_steps == 0:
            tell("workflow.no_viable_steps", execution_status=status)
        tell("workflow.task_finalization_started", context={name: getattr(task, name) for name in _CONTEXT})
        decision = decide(task, self._backoff_of(task), task.at)
        self.decisions.append(decision)
        self._tell_moves(task, note.worker, task.at, note.count)
        said = {"action": decision.action, "delay": decision.delay, "reason": decision.reason}
        tell("workflow.task_finalization_completed", execution_status=status, **said)
        if decision.action == "reenqueue":
            self._handed.tell(Handed(decision, note.count), _unless_good(note.count))

    def _hand_on(self, handed: Handed) -> None:
        decision = handed.decision
        status = {"execution_status": decision.status}

        def tell(name: str, **payload: Any) -> None:
            now = datetime.now(UTC)
            self._publish(f"workflow.task_reenqueue_{name}", now, decision.task_id, None, handed.count, **status, **payload)

        tell("started")
        try:
            self.strategy.reenqueue(decision)
        except Exception as error:
            tell("failed", error=f"{type(error).__name__}: {error}")
            raise  # to be counted and logged
        if decision.delay:
            tell("delayed", delay=decision.delay)
        else:
            tell("requested")

    def _tell_moves(
        self, task: TouchedTask | SettledTask, worker: str, at: datetime, count: Count, events: set[str] | None = None
    ) -> None:
        """Tell how this worker moved the task itself, each move once: another worker's are that one's to tell."""
        key = worker, task.task_id
        for move in task.moves:
            if move["id"] <= self._told.get(key, 0) or (events is not None and move["event"] not in events):
                continue
            _keep(self._told, key, move["id"])
            match move["state"]:
                case "in_progress":
                    self._publish("task.started", at, task.task_id, None, count, **title_of(task))
                case "complete" if isinstance(task, SettledTask):
                    done = {**title_of(task), "completed_steps": task.completed_steps}
                    self._publish("task.completed", at, task.task_id, None, count, **done)
                case "error" if isinstance(task, SettledTask):
                    said = {**title_of(task), "failed_steps": task.failed_steps}
                    self._publish("task.failed", at, task.task_id, None, count, **said)

    def _publish(
        self, name: str, at: datetime, task_id: UUID, step_id: int | None, count: Count, /, **payload: Any
    ) -> None:
        self._subscribers.publish(Event(name, at, task_id, step_id, payload), count)


def _said(name: str, of: ClaimedStep | Ending) -> dict[str, Any]:
    return {"step": name, "kind": of.kind, "attempt": of.attempt}


def _error(ending: Ending) -> Any:
    return ending.outcome.error if isinstance(ending.outcome, (Fail, Retry)) else None


def _keep(kept: OrderedDict[K, V], key: K, value: V) -> None:
    """Keep something, and let go of what was kept longest ago when there is too much."""
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > MOST_KEPT:
        kept.popitem(last=False)


def _unless_good(count: Count) -> Count:
    """Count only what was lost on the way: what arrives is counted by those it is for."""
    return lambda ok: None if ok else count(False)
