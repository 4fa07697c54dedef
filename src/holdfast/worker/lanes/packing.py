"""An attempt as JSON, for the process that runs it, and its outcome, for the worker."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache, reduce
from typing import Any
from uuid import UUID

from holdfast import masking
from holdfast.config import Config
from holdfast.connections.handler_tx import HandlerExecutor
from holdfast.handlers.batch import Batching
from holdfast.handlers.batch_signature import BatchSignature
from holdfast.handlers.registry import Handler, RetryPolicy
from holdfast.handlers.signature import Signature
from holdfast.models import ClaimedStep, Continue, Done, Fail, Json, Outcome, Release, Retry, Snooze
from holdfast.worker.attempt import Attempt, Claim


def packed(attempt: Attempt) -> dict[str, Any]:
    """Return an attempt as JSON."""
    handler = attempt.handler
    return {
        "module": handler.function.__module__,
        "name": handler.function.__qualname__,
        "kind": handler.kind,
        "is_retried": handler.retry is not None,
        "timeout": None if handler.timeout is None else handler.timeout.total_seconds(),
        "worker": attempt.ctx.worker,
        "lease": attempt.lease,
        **_packed_step(attempt),
    }


def _packed_step(attempt: Attempt) -> dict[str, Any]:
    step = attempt.step
    return {
        "renewed_at": attempt.renewed_at,
        "step": [step.step_id, None if step.run_id is None else str(step.run_id), step.attempt, step.lease_id],
        "input": step.input,
        "cursor": step.cursor,
        "batch_key": step.batch_key,
    }


def packed_batch(attempts: list[Attempt]) -> dict[str, Any]:
    """Return the attempts of one call as JSON."""
    batching = attempts[0].handler.batching
    shared = {"most": len(attempts) if batching is None else batching.most, "each": list(map(_packed_step, attempts))}
    return {**packed(attempts[0]), **shared}


def late(attempt: Attempt) -> dict[str, Any]:
    """Return the answer for an attempt whose lease ran out before the handler began."""
    return {"of": numbers(attempt), "is_late": True}


def numbers(attempt: Attempt) -> list[int]:
    """Return the numbers that tell whose answer it is."""
    return [attempt.step.step_id, attempt.step.lease_id]


def unpacked(work: dict[str, Any], dsn: str) -> Attempt:
    """Return the attempt, in the process that runs it."""
    key = Work(work["module"], work["name"], work["kind"], work["is_retried"], work["timeout"], work.get("most"))
    handler = _handler(key)
    step_id, run_id, number, lease_id = work["step"]
    cursor = None if work["cursor"] is None else json.dumps(work["cursor"])
    run = None if run_id is None else UUID(run_id)
    step = ClaimedStep(step_id, run, work["kind"], work["input"], number, lease_id, None, cursor, work["batch_key"])  # type: ignore[arg-type]
    executor = executor_for(dsn, work["worker"], work["lease"])
    return Attempt(step, handler, executor, work["lease"], Claim(1, work["renewed_at"]))


@dataclass(frozen=True)
class Work:
    """The key that identifies a handler across processes."""

    module: str
    name: str
    kind: str
    is_retried: bool
    timeout: float | None
    most: int | None  # steps of a call


@lru_cache
def _handler(work: Work) -> Handler:
    target: Any = reduce(getattr, work.name.split("."), importlib.import_module(work.module))
    function = target.handler.function if hasattr(target, "handler") else target
    batching = None if work.most is None else Batching(work.most)
    return Handler(
        kind=work.kind,
        function=function,
        signature=Signature(function) if batching is None else BatchSignature(function, batching),
        is_async=False,
        uses_cpu=True,
        queue="",
        retry=RetryPolicy() if work.is_retried else None,
        lease=None,
        timeout=None if work.timeout is None else timedelta(seconds=work.timeout),
        batching=batching,
    )


@lru_cache
def executor_for(dsn: str, worker: str, lease: float) -> HandlerExecutor:
    """Return the connections of the process, which all its attempts share."""
    return HandlerExecutor(dsn, worker, timedelta(seconds=lease), Config().call_deadline)


def read_outcome(settlement: dict[str, Any] | None) -> Outcome | None:
    """Read an outcome that the process sent."""
    if settlement is None:
        return None
    after = settlement.get("retry_after")
    wait_for = None if after is None else timedelta(seconds=float(after.removesuffix(" s")))
    value = masking.known.value  # the child masked what it knew; we may have read more secrets since it started
    match settlement["outcome"]:
        case "done":
            return Done(Json(json.dumps(value(settlement["result"]))))
        case "retry":
            return Retry(value(settlement["error"]), wait_for, settlement.get("pause"), policy=settlement.get("policy"),
                         ordinal=settlement.get("ordinal"), is_charged=settlement.get("is_charged", True))  # fmt: skip
        case "fail":
            return Fail(value(settlement["error"]))
        case "snooze":
            key = settlement.get("call_key")
            return Snooze(wait_for or timedelta(0), settlement.get("pause"), call_key=key)
        case "release":
            return Release(settlement["is_tried"])
        case _:
            return Continue(value(settlement["cursor"]), settlement["cursor_was"])
