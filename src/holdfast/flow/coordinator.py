"""Turns what workers do with steps of flows into events and decisions, in a thread beside them.

A pass is a settled batch. What it decided for its tasks is asked once, in its own transaction, and that answer serves
every event and decision of the pass; the next settle asks anew. Only what somebody subscribed to is asked for. Where
nobody listens none of this is wired.
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
from holdfast.flow.calls import ClosedTask, SettledTask, TaskContext, TouchedTask
from holdfast.flow.decisions import Decision, Durable, Strategy, decide
from holdfast.flow.events import CATALOGUE, Event, title_of
from holdfast.kernel.call import Call, Executor
from holdfast.models import ClaimedStep, Ending, Fail, Retry
from holdfast.notify import BackgroundNotifier, Count, Subscribers

K = TypeVar("K")
V = TypeVar("V")
MOST_KEPT = 10_000
_CONTEXT = [field.name for field in fields(TaskContext)]
# Which events each moment is told by; what nobody subscribed to is not asked for.
BEGINNING = frozenset({"step.before_handle"})
CLAIMING = BEGINNING | {"task.started", "step.execution_requested", "workflow.viable_steps_discovered"}
CLOSING = frozenset({"task.completed", "task.failed"})
BY_HAND = frozenset({"task.initialized", "task.retry_requested", "task.cancelled"}) | {
    "step.cancelled", "step.resolved_manually",
}  # fmt: skip
SETTLING = CATALOGUE.keys() - CLAIMING - CLOSING - BY_HAND


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
    tasks: list[SettledTask | ClosedTask] | None
    count: Count


@dataclass(frozen=True, slots=True)
class Scene:
    """Of which task something is told, when it happened, and who counts that it was told."""

    task_id: UUID
    at: datetime
    count: Count


@dataclass(frozen=True, slots=True)
class Handed:
    decision: Decision
    scene: Scene


class Coordinator:
    """Tells subscribers what becomes of tasks, hands those that go on to a strategy, and keeps what was decided."""

    face = "flow"

    def __init__(self, subscribers: Subscribers, backoff_of: Callable[[Any], Backoff], executor: Executor) -> None:
        self.strategy: Strategy = Durable()
        self.is_deciding = False  # whether somebody reads decisions, or has a strategy, beside those who subscribe
        self.decisions: deque[Decision] = deque(maxlen=MOST_KEPT)
        self._subscribers = subscribers
        self._backoff_of = backoff_of
        self._executor = executor
        self._notes: BackgroundNotifier[Claimed | Begun | Ended] = BackgroundNotifier(self._heed, "coordinator")
        self._handed: BackgroundNotifier[Handed] = BackgroundNotifier(self._hand_on, "strategy")
        self._names: OrderedDict[int, str] = OrderedDict()  # of steps in their tasks
        self._told: OrderedDict[tuple[str, UUID], int] = OrderedDict()  # the last move of a task that was told

    def query(self, worker: str, step_ids: list[int]) -> Call[Any] | None:
        """Ask where the tasks of settled steps stand, or only which of them are over."""
        if self.is_deciding or self._subscribers.want(SETTLING):
            return calls.settled_tasks(worker, step_ids)
        return calls.closed_tasks(worker, step_ids) if self._subscribers.want(CLOSING) else None

    def claimed(self, worker: str, steps: list[ClaimedStep], count: Count) -> None:
        """Take note of steps that were claimed."""
        if not self._subscribers.want(CLAIMING):
            return
        if of_runs := [step for step in steps if step.run_id is not None]:
            self._notes.tell(Claimed(worker, of_runs, count), _unless_good(count))

    def begun(self, step: ClaimedStep, count: Count) -> None:
        """Take note of a handler that is about to be called."""
        if step.run_id is not None and self._subscribers.want(BEGINNING):
            self._notes.tell(Begun(step, datetime.now(UTC), count), _unless_good(count))

    def ended(self, worker: str, endings: list[Ending], answers: list[Any] | None, count: Count) -> None:
        """Take note of what became of steps; of no tasks there is nothing to tell."""
        if answers != []:
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
        for task in self._executor.make(calls.touched_tasks(note.worker, list(steps))):
            scene = Scene(task.task_id, now, note.count)
            started = [move for move in task.moves if move["event"] == "started"]  # others are for their settle to tell
            self._tell_moves(scene, task, note.worker, started)
            taken = sorted((int(step_id), str(facts["name"])) for step_id, facts in task.steps.items())
            self._tell(scene, "workflow.viable_steps_discovered", steps=[name for _, name in taken])
            for step_id, name in taken:
                _keep(self._names, step_id, name)
                self._tell(scene, "step.execution_requested", step_id, **_said(name, steps[step_id]))

    def _tell_begun(self, note: Begun) -> None:
        step = note.step
        name = self._names.get(step.step_id)
        if name is not None and step.run_id is not None:  # else it is no step of a flow
            scene = Scene(step.run_id, note.at, note.count)
            self._tell(scene, "step.before_handle", step.step_id, **_said(name, step))

    def _tell_ended(self, note: Ended) -> None:
        if note.tasks is None:
            raise LookupError("could not read the state of the tasks after the settle; the journal has what happened")
        endings = {ending.step_id: ending for ending in note.endings}
        for task in note.tasks:
            scene = Scene(task.task_id, task.at, note.count)
            if isinstance(task, ClosedTask):
                self._tell_moves(scene, task, note.worker, task.moves)
                continue
            for step_id, facts in task.steps.items():
                ending = endings.get(int(step_id))
                self._names.pop(int(step_id), None)
                if ending is not None:
                    self._tell_ending(scene, ending, facts)
            self._finalize(scene, task, note.worker)

    def _tell_ending(self, scene: Scene, ending: Ending, facts: dict[str, Any]) -> None:
        said = _said(str(facts["name"]), ending)
        failed = {**said, "execution_duration": ending.took, "error": _error(ending)}
        budget = {**said, "attempts": facts["attempts"], "retry_limit": facts["retry_limit"]}
        step_id = ending.step_id
        match ending.event:
            case "succeeded":
                self._tell(scene, "step.completed", step_id, **said, execution_duration=ending.took)
            case "retried":
                self._tell(scene, "step.failed", step_id, **failed, will_retry=True)
                self._tell(scene, "step.retry_requested", step_id, **budget)
                waits = _waits(facts)
                if waits["delay"]:
                    self._tell(scene, "step.backoff", step_id, **said, **waits)
            case "failed":
                self._tell(scene, "step.failed", step_id, **failed, will_retry=False)
                if isinstance(ending.outcome, Retry):
                    self._tell(scene, "step.max_retries_reached", step_id, **budget)

    def _finalize(self, scene: Scene, task: SettledTask, worker: str) -> None:
        if task.execution_status not in {"has_ready_steps", "processing"}:  # its counts are a wide task's least
            self._tell(scene, "workflow.no_viable_steps", execution_status=task.execution_status)
        context = {name: getattr(task, name) for name in _CONTEXT}
        self._tell(scene, "workflow.task_finalization_started", context=context)
        decision = decide(task, self._backoff_of(task), task.at)
        self.decisions.append(decision)
        self._tell_moves(scene, task, worker, task.moves)
        said = {"action": decision.action, "delay": decision.delay, "reason": decision.reason}
        self._tell(scene, "workflow.task_finalization_completed", execution_status=decision.status, **said)
        if decision.action == "reenqueue":
            self._handed.tell(Handed(decision, scene), _unless_good(scene.count))

    def _hand_on(self, handed: Handed) -> None:
        decision, scene = handed.decision, handed.scene
        status = decision.status
        self._tell(scene, "workflow.task_reenqueue_started", execution_status=status)
        try:
            self.strategy.reenqueue(decision)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            self._tell(scene, "workflow.task_reenqueue_failed", execution_status=status, error=said)
            raise  # to be counted and logged
        if decision.delay:
            self._tell(scene, "workflow.task_reenqueue_delayed", execution_status=status, delay=decision.delay)
        else:
            self._tell(scene, "workflow.task_reenqueue_requested", execution_status=status)

    def _tell_moves(
        self, scene: Scene, task: TouchedTask | SettledTask | ClosedTask, worker: str, moves: list[Any]
    ) -> None:
        """Tell how this worker moved the task itself, each move once: another worker's are that one's to tell."""
        key = worker, task.task_id
        for move in moves:
            if move["id"] <= self._told.get(key, 0):
                continue
            _keep(self._told, key, move["id"])
            said: dict[str, Any] = dict(title_of(task))
            match move["state"]:
                case "in_progress":
                    self._tell(scene, "task.started", **said)
                case "complete" if not isinstance(task, TouchedTask):
                    self._tell(scene, "task.completed", **said, completed_steps=task.completed_steps)
                case "error" if not isinstance(task, TouchedTask):
                    self._tell(scene, "task.failed", **said, failed_steps=task.failed_steps)

    def _tell(self, scene: Scene, name: str, step_id: int | None = None, /, **payload: Any) -> None:
        self._subscribers.publish(Event(name, scene.at, scene.task_id, step_id, payload), scene.count)


def _said(name: str, of: ClaimedStep | Ending) -> dict[str, Any]:
    return {"step": name, "kind": of.kind, "attempt": of.attempt}


def _waits(facts: dict[str, Any]) -> dict[str, Any]:
    failed_at, due_at = (datetime.fromisoformat(facts[name]) for name in ("failed_at", "next_retry_at"))
    return {"next_retry_at": due_at, "delay": due_at - failed_at}


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
