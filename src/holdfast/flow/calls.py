"""One Python function per SQL function of the schema `flow` that Python calls; each returns a Call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from psycopg.types.json import Jsonb

from holdfast.kernel.arrays import Bigints
from holdfast.kernel.call import Call
from holdfast.kernel.finite import jsonb
from holdfast.models import CompletedInput, Json, RunOutcome

if TYPE_CHECKING:
    from holdfast.handlers.inputs import Wish


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """The state and the result of a step; its outcome is None until it ends."""

    step_id: int
    name: str
    state: str
    outcome: RunOutcome | None
    result: Any
    error: Any


@dataclass(frozen=True, slots=True)
class TouchedTask:
    """A task of steps that a worker claimed: the names of the steps, and the worker's moves of the task."""

    task_id: UUID
    name: str
    namespace: str
    version: str
    steps: dict[str, dict[str, Any]]
    moves: list[dict[str, Any]]

    @property
    def run_id(self) -> UUID:
        """The run, which SQL calls a task."""
        return self.task_id


@dataclass(frozen=True, slots=True)
class RunContext:
    """The execution context of a run: the counts of its steps, its status and the recommended action."""

    task_id: UUID
    name: str
    namespace: str
    version: str
    state: str
    total_steps: int
    pending_steps: int
    in_progress_steps: int
    completed_steps: int
    failed_steps: int
    ready_steps: int
    blocked_steps: int
    execution_status: str
    recommended_action: str
    completion_percentage: Decimal
    health_status: str
    earliest_retry_at: datetime | None

    @property
    def run_id(self) -> UUID:
        """The run, which SQL calls a task."""
        return self.task_id


@dataclass(frozen=True, slots=True)
class StepReadiness:
    """The state of a step, and whether a claim would take it now."""

    step_id: int
    task_id: UUID
    name: str
    current_state: str
    dependencies_satisfied: bool
    retry_eligible: bool
    ready_for_execution: bool
    last_failure_at: datetime | None
    next_retry_at: datetime | None
    total_parents: int
    completed_parents: int
    attempts: int
    retry_limit: int | None
    backoff_request_seconds: Decimal | None
    last_attempted_at: datetime | None
    processed: bool
    in_process: bool
    retryable: bool
    backoff_period_expired: bool
    waiting_reason: str | None

    @property
    def run_id(self) -> UUID:
        """The run, which SQL calls a task."""
        return self.task_id


@dataclass(frozen=True, slots=True)
class SettledTask:
    """A task after a settle: its execution context, when that was read, and the fields of a TouchedTask."""

    task_id: UUID
    name: str
    namespace: str
    version: str
    state: str
    total_steps: int
    pending_steps: int
    in_progress_steps: int
    completed_steps: int
    failed_steps: int
    ready_steps: int
    blocked_steps: int
    execution_status: str
    recommended_action: str
    completion_percentage: Decimal
    health_status: str
    earliest_retry_at: datetime | None
    at: datetime
    steps: dict[str, dict[str, Any]]
    moves: list[dict[str, Any]]

    @property
    def run_id(self) -> UUID:
        """The run, which SQL calls a task."""
        return self.task_id


@dataclass(frozen=True, slots=True)
class ClosedTask:
    """A task that a settle closed: how its steps ended, when that was read, and the worker's moves of the task."""

    task_id: UUID
    name: str
    namespace: str
    version: str
    completed_steps: int
    failed_steps: int
    at: datetime
    moves: list[dict[str, Any]]

    @property
    def run_id(self) -> UUID:
        """The run, which SQL calls a task."""
        return self.task_id


def define_flow(
    name: str,
    steps: Sequence[dict[str, Any]],
    *,
    namespace: str,
    version: str,
    description: str | None = None,
    context_schema: dict[str, Any] | None = None,
) -> Call[None]:
    """Define a flow."""
    schema = None if context_schema is None else Jsonb(context_schema)
    title = {"name": name, "namespace": namespace, "version": version, "description": description}
    return Call(
        "define_flow", type(None), {**title, "steps": Jsonb(list(steps)), "context_schema": schema}, schema="flow"
    )


def initialize_task(
    name: str,
    steps: Json,
    context: Json,
    *,
    namespace: str = "default",
    version: str = "0.1.0",
    key: str | None = None,
    tenant: str = "default",
    skip: Sequence[str] = (),
    about: dict[str, Any] | None = None,
    key_for: timedelta | None = None,
) -> Call[UUID]:
    """Start a task with its steps."""
    title = {"name": name, "namespace": namespace, "version": version, "tenant": tenant}
    arguments = {"steps": steps, "context": context, "skip": list(skip), "about": jsonb(about or {})}
    return Call("initialize_task", UUID, {**title, **arguments, "key": key, "key_for": key_for}, schema="flow")


def start_task(
    name: str,
    context: Any = None,
    *,
    namespace: str = "default",
    version: str | None = None,
    key: str | None = None,
    tenant: str = "default",
    skip: Sequence[str] = (),
    about: dict[str, Any] | None = None,
    key_for: timedelta | None = None,
) -> Call[UUID]:
    """Start a task by the latest registered definition."""
    title = {"name": name, "namespace": namespace, "version": version, "tenant": tenant}
    arguments = {"context": jsonb({} if context is None else context), "skip": list(skip), "about": jsonb(about or {})}
    return Call("start_task", UUID, {**title, **arguments, "key": key, "key_for": key_for}, schema="flow")


def step_surroundings(step_ids: Sequence[int], wishes: Sequence[Wish]) -> Call[CompletedInput]:
    """Read the arguments of handlers that are not in the step's own input."""
    of_steps, arguments, names, sources = zip(*wishes, strict=True) if wishes else ((), (), (), ())
    wanted = {"arguments": list(arguments), "names": list(names), "sources": list(sources)}
    ids = {"step_ids": Bigints(step_ids), "of_steps": Bigints(of_steps)}
    return Call("step_surroundings", CompletedInput, {**ids, **wanted}, keeps_json=True, schema="flow", is_read=True)


def step_outcomes(task_id: UUID, names: Sequence[str] | None = None) -> Call[StepOutcome]:
    """Read the states and results of a task's steps."""
    named = None if names is None else list(names)
    return Call("step_outcomes", StepOutcome, {"task_id": task_id, "names": named}, schema="flow", is_read=True)


def run_context(run_id: UUID) -> Call[RunContext]:
    """Read the execution context of a run."""
    return Call("get_task_execution_context", RunContext, {"task_id": run_id}, schema="flow", is_read=True)


def step_readiness(task_id: UUID, step_ids: Sequence[int] | None = None) -> Call[StepReadiness]:
    """Read which steps of a task are ready."""
    named = None if step_ids is None else Bigints(step_ids)
    return Call(
        "get_step_readiness_status", StepReadiness, {"task_id": task_id, "step_ids": named}, schema="flow", is_read=True
    )


def touched_tasks(worker: str, step_ids: Sequence[int]) -> Call[TouchedTask]:
    """Read the tasks of steps that a worker claimed."""
    return Call(
        "touched_tasks", TouchedTask, {"worker": worker, "step_ids": Bigints(step_ids)}, schema="flow", is_read=True
    )


def settled_tasks(worker: str, step_ids: Sequence[int]) -> Call[SettledTask]:
    """Read the tasks of steps that a worker settled."""
    return Call(
        "settled_tasks", SettledTask, {"worker": worker, "step_ids": Bigints(step_ids)}, schema="flow", is_read=True
    )


def closed_tasks(worker: str, step_ids: Sequence[int]) -> Call[ClosedTask]:
    """Read which tasks of steps that a worker settled have ended."""
    arguments = {"worker": worker, "step_ids": Bigints(step_ids)}
    return Call("closed_tasks", ClosedTask, arguments, schema="flow", is_read=True)


def retry_from(step_id: int, reason: str | None = None) -> Call[UUID]:
    """Repeat a step of a finished task, and all that wait for it, in a new task."""
    return Call("retry_from", UUID, {"step_id": step_id, "reason": reason}, schema="flow")
