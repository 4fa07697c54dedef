"""Publishes events and decisions about flows from what workers do with their steps, in its own thread.

A pass is a settled batch. One query in its transaction reads the state of its runs, and serves every event and
decision of the pass. Only what somebody subscribed to is read. Without a subscriber or a strategy nothing of this is
connected to a worker.
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
from holdfast.flow.calls import ClosedTask, RunContext, SettledTask, TouchedTask
from holdfast.flow.decisions import Decision, Durable, Strategy, decide
from holdfast.flow.events import CATALOGUE, Event, title_of
from holdfast.kernel.call import Call, Executor
from holdfast.models import ClaimedStep, Ending, Fail, Retry
from holdfast.notify import BackgroundNotifier, Count, Subscribers, failures_only

K = TypeVar("K")
V = TypeVar("V")
MOST_KEPT = 10_000
_CONTEXT = [field.name for field in fields(RunContext)]
# The events of each moment; nothing is read for events without a subscriber.
BEGINNING = frozenset({"flow.step.before_handle"})
CLAIMING = BEGINNING | {"flow.run.started", "flow.step.execution_requested", "flow.workflow.viable_steps_discovered"}
CLOSING = frozenset({"flow.run.completed", "flow.run.failed"})
MANUAL = frozenset({"flow.run.initialized", "flow.run.retry_requested", "flow.run.cancelled"}) | {
    "flow.step.cancelled", "flow.step.resolved_manually",
}  # fmt: skip
SETTLING = CATALOGUE.keys() - CLAIMING - CLOSING - MANUAL


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
    runs: list[SettledTask | ClosedTask] | None
    count: Count


@dataclass(frozen=True, slots=True)
class Scene:
    """The run that events are about, when it happened, and the counter of deliveries."""

    run_id: UUID
    at: datetime
    count: Count


@dataclass(frozen=True, slots=True)
class StrategyCall:
    decision: Decision
    scene: Scene


class Coordinator:
    """Publishes events of runs, passes runs that continue to a strategy, and keeps the decisions."""

    face = "flow"

    def __init__(self, subscribers: Subscribers, backoff_of: Callable[[Any], Backoff], executor: Executor) -> None:
        self.strategy: Strategy = Durable()
        self.is_deciding = False  # whether decisions are read or passed to a strategy, even without subscribers
        self.decisions: deque[Decision] = deque(maxlen=MOST_KEPT)
        self._subscribers = subscribers
        self._backoff_of = backoff_of
        self._executor = executor
        self._notes: BackgroundNotifier[Claimed | Begun | Ended] = BackgroundNotifier(self._publish_note, "coordinator")
        self._strategy_calls: BackgroundNotifier[StrategyCall] = BackgroundNotifier(self._call_strategy, "strategy")
        self._names: OrderedDict[int, str] = OrderedDict()  # of steps in their runs
        self._published: OrderedDict[tuple[str, UUID], int] = OrderedDict()  # the last published move of a run

    def query(self, worker: str, step_ids: list[int]) -> Call[Any] | None:
        """Return the query for the runs of settled steps, or only for those that have ended."""
        if self.is_deciding or self._subscribers.want(SETTLING):
            return calls.settled_tasks(worker, step_ids)
        return calls.closed_tasks(worker, step_ids) if self._subscribers.want(CLOSING) else None

    def claimed(self, worker: str, steps: list[ClaimedStep], count: Count) -> None:
        """Receive claimed steps."""
        if not self._subscribers.want(CLAIMING):
            return
        if of_runs := [step for step in steps if step.run_id is not None]:
            self._notes.tell(Claimed(worker, of_runs, count), failures_only(count))

    def begun(self, step: ClaimedStep, count: Count) -> None:
        """Receive a step whose handler is about to be called."""
        if step.run_id is not None and self._subscribers.want(BEGINNING):
            self._notes.tell(Begun(step, datetime.now(UTC), count), failures_only(count))

    def ended(self, worker: str, endings: list[Ending], answers: list[Any] | None, count: Count) -> None:
        """Receive the outcomes of steps, unless none belongs to a run of a flow."""
        if answers != []:
            self._notes.tell(Ended(worker, endings, answers, count), failures_only(count))

    def flush(self, seconds: float) -> None:
        """Wait until all events are delivered, up to the timeout."""
        for each in (self._notes, self._strategy_calls, self._subscribers):
            each.flush(seconds)

    def _publish_note(self, note: Claimed | Begun | Ended) -> None:
        match note:
            case Claimed():
                self._publish_claimed(note)
            case Begun():
                self._publish_begun(note)
            case Ended():
                self._publish_ended(note)

    def _publish_claimed(self, note: Claimed) -> None:
        steps = {step.step_id: step for step in note.steps}
        now = datetime.now(UTC)
        for run in self._executor.make(calls.touched_tasks(note.worker, list(steps))):
            scene = Scene(run.run_id, now, note.count)
            started = [move for move in run.moves if move["event"] == "started"]  # its settle publishes the others
            self._publish_moves(scene, run, note.worker, started)
            taken = sorted((int(step_id), str(facts["name"])) for step_id, facts in run.steps.items())
            self._publish(scene, "flow.workflow.viable_steps_discovered", steps=[name for _, name in taken])
            for step_id, name in taken:
                _keep(self._names, step_id, name)
                self._publish(scene, "flow.step.execution_requested", step_id, **_step_fields(name, steps[step_id]))

    def _publish_begun(self, note: Begun) -> None:
        step = note.step
        name = self._names.get(step.step_id)
        if name is not None and step.run_id is not None:  # else it is not a step of a flow
            scene = Scene(step.run_id, note.at, note.count)
            self._publish(scene, "flow.step.before_handle", step.step_id, **_step_fields(name, step))

    def _publish_ended(self, note: Ended) -> None:
        if note.runs is None:
            raise LookupError("could not read the state of the runs after the settle; see the journal")
        endings = {ending.step_id: ending for ending in note.endings}
        for run in note.runs:
            scene = Scene(run.run_id, run.at, note.count)
            if isinstance(run, ClosedTask):
                self._publish_moves(scene, run, note.worker, run.moves)
                continue
            for step_id, facts in run.steps.items():
                ending = endings.get(int(step_id))
                self._names.pop(int(step_id), None)
                if ending is not None:
                    self._publish_ending(scene, ending, facts)
            self._finalize(scene, run, note.worker)

    def _publish_ending(self, scene: Scene, ending: Ending, facts: dict[str, Any]) -> None:
        payload = _step_fields(str(facts["name"]), ending)
        execution = {"execution_duration": ending.took, "trace_id": ending.trace_id}
        failed = {**payload, **execution, "error": _error(ending)}
        budget = {**payload, "attempts": facts["attempts"], "retry_limit": facts["retry_limit"]}
        step_id = ending.step_id
        match ending.event:
            case "succeeded":
                self._publish(scene, "flow.step.completed", step_id, **payload, **execution)
            case "retried":
                self._publish(scene, "flow.step.failed", step_id, **failed, will_retry=True)
                self._publish(scene, "flow.step.retry_requested", step_id, **budget)
                waits = _waits(facts)
                if waits["delay"]:
                    self._publish(scene, "flow.step.backoff", step_id, **payload, **waits)
            case "failed":
                self._publish(scene, "flow.step.failed", step_id, **failed, will_retry=False)
                if isinstance(ending.outcome, Retry):
                    self._publish(scene, "flow.step.max_retries_reached", step_id, **budget)

    def _finalize(self, scene: Scene, run: SettledTask, worker: str) -> None:
        if run.execution_status not in {"has_ready_steps", "processing"}:  # counts of a wide run are lower bounds
            self._publish(scene, "flow.workflow.no_viable_steps", execution_status=run.execution_status)
        context = {name: getattr(run, name) for name in _CONTEXT}
        self._publish(scene, "flow.workflow.finalization_started", context=context)
        decision = decide(run, self._backoff_of(run), run.at)
        self.decisions.append(decision)
        self._publish_moves(scene, run, worker, run.moves)
        payload = {"action": decision.action, "delay": decision.delay, "reason": decision.reason}
        self._publish(scene, "flow.workflow.finalization_completed", execution_status=decision.status, **payload)
        if decision.action == "reenqueue":
            self._strategy_calls.tell(StrategyCall(decision, scene), failures_only(scene.count))

    def _call_strategy(self, call: StrategyCall) -> None:
        decision, scene = call.decision, call.scene
        status = decision.status
        self._publish(scene, "flow.workflow.reenqueue_started", execution_status=status)
        try:
            self.strategy.reenqueue(decision)
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            self._publish(scene, "flow.workflow.reenqueue_failed", execution_status=status, error=message)
            raise  # counted and logged by the caller
        if decision.delay:
            self._publish(scene, "flow.workflow.reenqueue_delayed", execution_status=status, delay=decision.delay)
        else:
            self._publish(scene, "flow.workflow.reenqueue_requested", execution_status=status)

    def _publish_moves(
        self, scene: Scene, run: TouchedTask | SettledTask | ClosedTask, worker: str, moves: list[Any]
    ) -> None:
        """Publish each move of the run by this worker once; other workers publish theirs."""
        key = worker, run.run_id
        for move in moves:
            if move["id"] <= self._published.get(key, 0):
                continue
            _keep(self._published, key, move["id"])
            payload: dict[str, Any] = dict(title_of(run))
            match move["state"]:
                case "in_progress":
                    self._publish(scene, "flow.run.started", **payload)
                case "complete" if not isinstance(run, TouchedTask):
                    self._publish(scene, "flow.run.completed", **payload, completed_steps=run.completed_steps)
                case "error" if not isinstance(run, TouchedTask):
                    self._publish(scene, "flow.run.failed", **payload, failed_steps=run.failed_steps)

    def _publish(self, scene: Scene, name: str, step_id: int | None = None, /, **payload: Any) -> None:
        self._subscribers.publish(Event(name, scene.at, scene.run_id, step_id, payload), scene.count)


def _step_fields(name: str, of: ClaimedStep | Ending) -> dict[str, Any]:
    return {"step": name, "kind": of.kind, "attempt": of.attempt}


def _waits(facts: dict[str, Any]) -> dict[str, Any]:
    failed_at, due_at = (datetime.fromisoformat(facts[name]) for name in ("failed_at", "next_retry_at"))
    return {"next_retry_at": due_at, "delay": due_at - failed_at}


def _error(ending: Ending) -> Any:
    return ending.outcome.error if isinstance(ending.outcome, (Fail, Retry)) else None


def _keep(kept: OrderedDict[K, V], key: K, value: V) -> None:
    """Keep a value, and drop the oldest when there are too many."""
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > MOST_KEPT:
        kept.popitem(last=False)
