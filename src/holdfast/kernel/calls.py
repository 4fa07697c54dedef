"""One Python function per SQL function that workers, starters and operators use; each returns a Call."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from holdfast.kernel.arrays import Bigints, Jsons, Texts
from holdfast.kernel.call import Call
from holdfast.kernel.finite import jsonb
from holdfast.kernel.limit_calls import numeric
from holdfast.kernel.outcomes import as_json
from holdfast.models import (
    ClaimedStep,
    Done,
    HistoryEvent,
    Json,
    Law,
    Level,
    LostLease,
    MeasuredUpkeep,
    RetryWait,
    RunResult,
    SettledStep,
    Settlement,
    Status,
    StepResult,
    Upkeep,
    Violation,
)


def start_task(
    name: str,
    input: Any = None,  # noqa: A002 - the word is the same in SQL
    *,
    queue: str | None = None,
    key: str | None = None,
    unique_key: str | None = None,
    due_at: datetime | None = None,
    delay: timedelta | None = None,
    priority: int = 0,
    tenant: str = "default",
    limits: Sequence[str] | None = None,
    weight: float | Decimal | None = None,
    key_for: timedelta | None = None,
    batch_key: str | None = None,
) -> Call[int]:
    """Start one task; a `delay` takes the place of `due_at`, and the database adds it to its clock."""
    keys = {"key": key, "unique_key": unique_key, "key_for": key_for}
    due = due_at if delay is None else delay
    arguments = {"queue": queue, "due_at": due, **keys, **_limited(limits, weight), "batch_key": batch_key}
    return Call(
        "start_task",
        int,
        {
            "name": name,
            "input": _jsonb({} if input is None else input),
            "priority": priority,
            "tenant": tenant,
            **arguments,
        },
        is_delayed=delay is not None,
    )


def start_step(
    machine: str,
    kind: str,
    input: Any = None,  # noqa: A002 - the word is the same in SQL
    *,
    queue: str | None = None,
    key: str | None = None,
    unique_key: str | None = None,
    due_at: datetime | None = None,
    priority: int = 0,
    tenant: str = "default",
    policy: str | None = None,
    parked_for: str | None = None,
    actor: str | None = None,
    limits: Sequence[str] | None = None,
    weight: float | Decimal | None = None,
    key_for: timedelta | None = None,
    batch_key: str | None = None,
) -> Call[int]:
    """Start one step of a machine, without a run; `actor` is the person that the login acts for."""
    start = start_task(
        kind, input, queue=queue, key=key, unique_key=unique_key, due_at=due_at, priority=priority, tenant=tenant,
        limits=limits, weight=weight, key_for=key_for, batch_key=batch_key,
    )  # fmt: skip
    arguments = {parameter: value for parameter, value in start.arguments.items() if parameter != "name"}
    own = {"machine": machine, "kind": kind, "policy": policy, "parked_for": parked_for, "actor": actor}
    return Call("start_step", int, {**arguments, **own})


def start_tasks(tasks: Sequence[dict[str, Any]]) -> Call[int]:
    """Start tasks given by start_task's parameter names; for thousands use `kernel.bulk`."""
    return Call("start_tasks", int, {"tasks": jsonb(list(tasks))})


def start_run(
    machine: str,
    name: str,
    step_machine: str,
    *,
    steps: Sequence[dict[str, Any]] = (),
    input: Any = None,  # noqa: A002 - the word is the same in SQL
    key: str | None = None,
    tenant: str = "default",
    of_run: UUID | None = None,
    key_for: timedelta | None = None,
) -> Call[UUID]:
    """Start a run with its plan of steps."""
    about = {"tenant": tenant, "of_run": of_run, "input": jsonb({} if input is None else input)}
    arguments = {"key": key, "key_for": key_for, **about}
    return Call(
        "start_run",
        UUID,
        {"machine": machine, "name": name, "step_machine": step_machine, "steps": jsonb(list(steps)), **arguments},
    )


def stage_steps() -> Call[None]:
    """Create the staging tables of a bulk start."""
    return Call("stage_steps", type(None), {})


def take_staged(machine: str, *, run_id: UUID | None = None, tenant: str = "default") -> Call[int]:
    """Turn the staged rows into tasks, or into steps of a run."""
    return Call("take_staged", int, {"machine": machine, "run_id": run_id, "tenant": tenant})


def claim_steps(
    worker: str,
    queue: str = "default",
    kinds: Sequence[str] | None = None,
    *,
    batch: int = 1,
    lease: timedelta | None = None,
    tenants: Sequence[str] | None = None,
    machine: str | None = None,
    free: int | None = None,
    calls: int | None = None,
    keeps_json: bool = False,
) -> Call[ClaimedStep]:
    """Claim due steps under leases; with `keeps_json` their inputs and cursors stay JSON text."""
    served = kinds if kinds is None or isinstance(kinds, Texts) else list(kinds)
    narrowed = None if tenants is None else list(tenants)
    arguments = {"kinds": served, "tenants": narrowed, "machine": machine, "free": free, "calls": calls}
    return Call(
        "claim_steps",
        ClaimedStep,
        {"worker": worker, "queue": queue, "batch": batch, "lease": lease, **arguments},
        keeps_json,
    )


def renew_leases(
    worker: str, lease_ids: Sequence[int], *, lease: timedelta | None = None, step_ids: Sequence[int] | None = None
) -> Call[int]:
    """Extend leases; a lease that is missing in the answer is lost."""
    held = {"lease_ids": list(lease_ids), "step_ids": None if step_ids is None else list(step_ids)}
    return Call("renew_leases", int, {"worker": worker, "lease": lease, **held})


def lost_leases(step_ids: Sequence[int], lease_ids: Sequence[int]) -> Call[LostLease]:
    """Return which leases are lost, and the current state of their steps."""
    return Call("lost_leases", LostLease, {"step_ids": list(step_ids), "lease_ids": list(lease_ids)}, is_read=True)


def leases_left(step_ids: Sequence[int], lease_ids: Sequence[int], at_least: timedelta) -> Call[int]:
    """Return the leases that are still held and last for at least that long."""
    held = {"step_ids": list(step_ids), "lease_ids": list(lease_ids)}
    return Call("leases_left", int, {**held, "at_least": at_least}, is_read=True)


def settle_steps(settlements: Iterable[Settlement]) -> Call[SettledStep]:
    """Report the outcomes of claimed steps: completed ones as arrays, the rest as JSON."""
    step_ids, lease_ids, results, others = Bigints(), Bigints(), Jsons(), []
    for settlement in settlements:
        step_id, lease_id, outcome = settlement[:3]
        if type(outcome) is Done:
            step_ids.append(step_id)
            lease_ids.append(lease_id)
            result = outcome.result
            results.append(result if type(result) is Json else json.dumps(result))
        else:
            others.append(as_json(settlement))
    arguments = {"step_ids": step_ids, "lease_ids": lease_ids, "results": results, "others": Jsonb(others)}
    return Call("settle_batch", SettledStep, arguments)


def settle_whole(settlements: Iterable[Settlement], *, must_progress: bool = False) -> Call[SettledStep]:
    """Report the outcomes of claimed steps for a transaction that fails unless all of them are accepted."""
    arguments = {**settle_steps(settlements).arguments, "must_progress": must_progress}
    return Call("settle_whole", SettledStep, arguments)


def step_results(step_ids: Sequence[int]) -> Call[StepResult]:
    """Read the outcomes of steps."""
    return Call("step_results", StepResult, {"step_ids": list(step_ids)}, is_read=True)


def retry_waits(step_ids: Sequence[int]) -> Call[RetryWait]:
    """Read in how long steps are due again."""
    return Call("retry_waits", RetryWait, {"step_ids": list(step_ids)}, is_read=True)


def clock() -> Call[datetime]:
    """Read the kernel's clock."""
    return Call("clock", datetime, {}, is_read=True)


def run_results(run_ids: Sequence[UUID]) -> Call[RunResult]:
    """Read the outcomes of runs."""
    return Call("run_results", RunResult, {"run_ids": list(run_ids)}, is_read=True)


def step_status(step_ids: Sequence[int]) -> Call[Status]:
    """Read the state of steps, for their handles."""
    return Call("step_status", Status, {"step_ids": list(step_ids)}, is_read=True)


def run_status(run_ids: Sequence[UUID]) -> Call[Status]:
    """Read the state of runs, for their handles."""
    return Call("run_status", Status, {"run_ids": list(run_ids)}, is_read=True)


def run_machine(of_run: UUID) -> Call[str]:
    """Read the machine of a run."""
    return Call("run_machine", str, {"of_run": of_run}, is_read=True)


def step_events(of_step: int) -> Call[HistoryEvent]:
    """Read the moves and notes of a step."""
    return Call("step_events", HistoryEvent, {"of_step": of_step}, is_read=True)


def run_events(of_run: UUID) -> Call[HistoryEvent]:
    """Read the moves and notes of a run and of its steps."""
    return Call("run_events", HistoryEvent, {"of_run": of_run}, is_read=True)


def add_awaited(
    step_id: int, lease_id: int, steps: Sequence[dict[str, Any]], awaited: Sequence[str] | None = None
) -> Call[int]:
    """Add steps that a held step then waits for."""
    named = None if awaited is None else list(awaited)
    return Call(
        "add_awaited",
        int,
        {"step_id": step_id, "lease_id": lease_id, "steps": Jsonb(list(steps)), "awaited": named},
    )


def rescue_steps(*, batch: int | None = 100) -> Call[SettledStep]:
    """Release the steps of workers that did not renew their leases in time."""
    return Call("rescue_steps", SettledStep, {"batch": batch})


def upkeep(*, batch: int = 1000, worker: str | None = None, about: dict[str, Any] | None = None) -> Call[Upkeep]:
    """Run one round of upkeep, as every worker does now and then, and return its counts."""
    description = None if about is None else Jsonb(about)
    return Call("upkeep", Upkeep, {"batch": batch, "worker": worker, "about": description})


def measured_upkeep(
    worker: str, *, about: dict[str, Any] | None = None, batch: int = 1000, most: int = 0
) -> Call[MeasuredUpkeep]:
    """Run one round of upkeep and measure; count at most `most` due steps per queue."""
    description = None if about is None else Jsonb(about)
    arguments = {"worker": worker, "about": description, "batch": batch, "most": most}
    return Call("measured_upkeep", MeasuredUpkeep, arguments)


def move_chunk(batch: int) -> Call[int]:
    """Move about so many steps of a run that was cancelled, retried, stopped or resumed; return how many moved."""
    return Call("move_chunk", int, {"batch": batch})


def note(
    step_id: int, lease_id: int, level: Level, message: str, *, payload: Any = None, key: str | None = None
) -> Call[int]:
    """Write a note on a step that the caller holds."""
    arguments = {"level": level, "message": message, "payload": jsonb({} if payload is None else payload), "key": key}
    return Call("note", int, {"step_id": step_id, "lease_id": lease_id, **arguments})


def cancel(id: str, reason: str | None = None, actor: str | None = None) -> Call[str]:  # noqa: A002
    """Cancel a step or a run; `actor` is the person that the login acts for, here and below."""
    return Call("cancel", str, {"id": id, "reason": reason, "actor": actor})


def retry(id: str, reason: str | None = None, actor: str | None = None) -> Call[str]:  # noqa: A002
    """Retry a failed step, or the failed steps of a run."""
    return Call("retry", str, {"id": id, "reason": reason, "actor": actor})


def halted_runs(run_ids: Sequence[UUID]) -> Call[UUID]:
    """Of these runs, find those that are paused, stopped or over."""
    return Call("halted_runs", UUID, {"run_ids": list(run_ids)}, is_read=True)


def retry_steps(
    id: str,  # noqa: A002
    ids: Sequence[int],
    reason: str | None = None,
    actor: str | None = None,
) -> Call[str]:
    """Retry chosen steps of a run that is over: those that failed, and those that were not tried."""
    return Call("retry_steps", str, {"id": id, "ids": Bigints(ids), "reason": reason, "actor": actor})


def queue_run(
    id: str,  # noqa: A002
    *,
    first: int | None = None,
    reason: str | None = None,
    actor: str | None = None,
) -> Call[str]:
    """Queue a run that was made without being queued; with `first` only so many of its steps are admitted."""
    return Call("queue_run", str, {"id": id, "first": first, "reason": reason, "actor": actor})


def pause_run(id: str, reason: str | None = None, actor: str | None = None) -> Call[str]:  # noqa: A002
    """Let no step of a run be claimed; what is held runs to its end."""
    return Call("pause_run", str, {"id": id, "reason": reason, "actor": actor})


def resume_run(id: str, reason: str | None = None, actor: str | None = None) -> Call[str]:  # noqa: A002
    """End a run's pause."""
    return Call("resume_run", str, {"id": id, "reason": reason, "actor": actor})


def stop_run(id: str, reason: str | None = None, actor: str | None = None) -> Call[str]:  # noqa: A002
    """End a run early; a retry continues with the steps that were not tried."""
    return Call("stop_run", str, {"id": id, "reason": reason, "actor": actor})


def resolve(id: str, reason: str | None = None, result: Any = None, actor: str | None = None) -> Call[str]:  # noqa: A002
    """Mark a step or a run as resolved by hand, with the result that a step's children receive."""
    given = None if result is None else _jsonb(result)
    return Call("resolve", str, {"id": id, "reason": reason, "result": given, "actor": actor})


def park_steps(ids: Sequence[int], parked_for: str, reason: str | None = None, actor: str | None = None) -> Call[int]:
    """Keep due steps from being claimed until they are unparked; those that cannot be parked are left out."""
    return Call("park_steps", int, {"ids": list(ids), "parked_for": parked_for, "reason": reason, "actor": actor})


def unpark_steps(ids: Sequence[int], reason: str | None = None, actor: str | None = None) -> Call[int]:
    """Make parked steps due again, by the reason they were parked for."""
    return Call("unpark_steps", int, {"ids": list(ids), "reason": reason, "actor": actor})


def pause_queue(queue: str, reason: str | None = None, actor: str | None = None) -> Call[None]:
    """Stop claims from a queue."""
    return Call("pause_queue", type(None), {"queue": queue, "reason": reason, "actor": actor})


def resume_queue(queue: str, reason: str | None = None, actor: str | None = None) -> Call[None]:
    """Resume claims from a queue."""
    return Call("resume_queue", type(None), {"queue": queue, "reason": reason, "actor": actor})


def enlist_worker(
    worker: str,
    queues: Sequence[str],
    *,
    kinds: Sequence[str] | None = None,
    tenants: Sequence[str] | None = None,
    about: dict[str, Any] | None = None,
) -> Call[None]:
    """Register a worker with what it serves, once it is connected."""
    arguments = {"kinds": None if kinds is None else list(kinds), "tenants": None if tenants is None else list(tenants)}
    description = Jsonb({} if about is None else about)
    return Call(
        "enlist_worker", type(None), {"worker": worker, "queues": list(queues), "about": description, **arguments}
    )


def retire_worker(worker: str) -> Call[None]:
    """Remove a worker's rows when it stops in an orderly way."""
    return Call("retire_worker", type(None), {"worker": worker})


def namesakes(worker: str) -> Call[str]:
    """Return the live workers that have the same name."""
    return Call("namesakes", str, {"worker": worker}, is_read=True)


def mark_asleep(worker: str, queue: str = "default") -> Call[timedelta | None]:
    """Request a hint for the next start in these queues, and return how long until a step is due without one."""
    return Call("mark_asleep", timedelta, {"worker": worker, "queue": queue})


def define_kind(
    kind: str,
    *,
    queue: str | None = None,
    policy: str | None = None,
    lease: timedelta | None = None,
    timeout: timedelta | None = None,
    limits: Sequence[str] | None = None,
    weight: str | None = None,
    call_weight: float | Decimal | None = None,
    batch: int | None = None,
    batch_by: str | None = None,
) -> Call[None]:
    """Register the defaults of a handler's steps."""
    arguments = {"queue": queue, "policy": policy, "lease": lease, "timeout": timeout}
    limited = {**_limited(limits, None), "weight": weight, "call_weight": numeric(call_weight)}
    return Call("define_kind", type(None), {"kind": kind, **arguments, **limited, "batch": batch, "batch_by": batch_by})


def define_policy(
    policy: str,
    *,
    tries: int = 3,
    waits: Sequence[timedelta] = (),
    base: timedelta = timedelta(seconds=1),
    growth: float = 2,
    longest: timedelta = timedelta(hours=1),
    jitter: float = 0.1,
    longest_retry_after: timedelta = timedelta(hours=1),
    law: Law = "exponential",
    jitter_in_seconds: bool = False,
    retryable: bool = True,
) -> Call[None]:
    """Register a retry policy."""
    waiting = {"waits": list(waits), "base": base, "growth": Decimal(str(growth)), "law": law, "longest": longest}
    spread = {"jitter": Decimal(str(jitter)), "jitter_in_seconds": jitter_in_seconds}
    bounds = {"tries": tries, "retryable": retryable, "longest_retry_after": longest_retry_after}
    return Call("define_policy", type(None), {"policy": policy, **waiting, **spread, **bounds})


def violations() -> Call[Violation]:
    """List every broken invariant."""
    return Call("violations", Violation, {}, is_read=True)


def _limited(limits: Sequence[str] | None, weight: float | Decimal | None) -> dict[str, Any]:
    return {"limits": None if limits is None else list(limits), "weight": numeric(weight)}


def _jsonb(value: Any) -> Jsonb | Json:
    return value if isinstance(value, Json) else jsonb(value)
