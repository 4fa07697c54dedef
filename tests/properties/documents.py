"""What the documents fix, as tables: legal moves, retry laws, and the kinds that the properties are tried with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

# from_state event to_state
MACHINES = {
    "work.task": """
        pending claimed running, running succeeded done, running retried pending, running failed error,
        running snoozed pending, running released pending, running continued pending, running expired pending,
        pending cancelled cancelled, running cancelled cancelled, error reopened pending, error resolved done""",
    "flow.step": """
        pending claimed in_progress, in_progress succeeded complete, in_progress retried error,
        in_progress failed error, in_progress expired error, in_progress snoozed pending, in_progress released pending,
        in_progress continued pending, error reopened pending, error resolved resolved_manually,
        pending resolved resolved_manually, pending cancelled cancelled, in_progress cancelled cancelled,
        error cancelled cancelled""",
    "flow.task": """
        pending started in_progress, in_progress all_succeeded complete, in_progress some_failed error,
        in_progress none_succeeded error, in_progress blocked error, error reopened pending,
        error resolved resolved_manually, pending cancelled cancelled, in_progress cancelled cancelled""",
    "ops.run": """
        queued claimed claimed, claimed started running, running succeeded success, running failed failed,
        queued cancelled cancelled, claimed cancelled cancelled, running cancelled cancelled,
        claimed expired cancelled, running expired cancelled""",
}
MOVES = {
    machine: {(before, event): after for before, event, after in map(str.split, text.split(","))}
    for machine, text in MACHINES.items()
}
HELD = {"running", "in_progress", "claimed"}
ENDS = {
    "done": "succeeded", "complete": "succeeded", "success": "succeeded", "resolved_manually": "succeeded",
    "error": "failed", "failed": "failed", "cancelled": "cancelled",
}  # fmt: skip
FAULTS = {"retried", "failed", "expired"}
DEFAULT_LEASE = timedelta(seconds=300)
LONG_SILENT = timedelta(minutes=10)  # who was not rescued by then is a violation


@dataclass(frozen=True)
class Policy:
    tries: int
    wait: Callable[[int], int]  # seconds after the nth failure, without jitter
    longest_retry_after: timedelta = timedelta(hours=1)


POLICIES = {
    "work.task": Policy(3, lambda _: 0),
    "flow.step": Policy(3, lambda n: (1, 2, 4, 8, 16, 32)[n - 1], timedelta(seconds=300)),
    "rules.target": Policy(4, lambda n: min(2**n, 64)),
    "ops.run": Policy(1, lambda _: 0),
}


@dataclass(frozen=True)
class Kind:
    policy: str | None = None
    lease: timedelta | None = None
    queue: str = "default"


KINDS = {
    "mail": Kind(),
    "price": Kind(policy="rules.target", lease=timedelta(seconds=20)),
    "page": Kind(policy="flow.step", queue="pages"),
}
