"""The kill matrix: every failpoint that a worker or a starter meets, and what it has to be doing to meet it.

The cells of a step share a database, and each has a queue of its own there: none can take another's tasks away.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MANY = 50  # tasks of a bulk start
LOAD = 40  # tasks for a worker that is killed some way into them


@dataclass(frozen=True)
class Cell:
    """One worker that is to die at a failpoint, and the tasks that it has by then."""

    failpoint: str
    kind: str = "deposit"
    arguments: dict[str, Any] = field(default_factory=dict)
    turn: int = 1
    tasks: int = 4
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its worker, and the queue that this has to itself."""
        return f"{self.failpoint}.{self.kind}.{self.turn}"

    @property
    def arms(self) -> str:
        return f"{self.failpoint}:kill9@{self.turn}"


def around(*places: str, **more: Any) -> list[Cell]:
    """Kill before each place, and after it."""
    return [Cell(f"{side}_{place}", **more) for place in places for side in ("before", "after")]


HELD: dict[str, Any] = {"kind": "wait", "arguments": {"gate": "go"}}
SHORT_DOZE: dict[str, Any] = {"kind": "doze", "arguments": {"seconds": 0.02}}  # not all of them in one or two settles
LONG_DOZE: dict[str, Any] = {"kind": "doze", "arguments": {"seconds": 2}}
# A look for lost leases comes only to those that are not renewed meanwhile.
RARELY_RENEWED: dict[str, Any] = {"kind": "doze", "arguments": {"seconds": 4}, "settings": {"lease": "9s"}}

WORKING = {
    "settle": [
        *around("settle_batch", turn=3, tasks=LOAD, **SHORT_DOZE),
        *around("commit", kind="deposit"),
        *around("commit", kind="adeposit"),
        *around(
            "settle_whole", "commit", kind="deposit_much"
        ),  # the settle of a small result has no message of its own
    ],
    "page": around("commit", kind="turn_pages", arguments={"pages": 4}, turn=3),
    "connect": around("define_policy", "define_kind", "enlist_worker", "namesakes", kind="adeposit"),
    "claim": [
        *around("measured_upkeep", "claim_steps", "hand_out"),
        *around("claim_steps", turn=3, tasks=LOAD),
    ],
    "run": [
        *around("handler"),
        *around("handler", kind="adeposit"),
        Cell("after_handler", "deposit_apart"),
        Cell("after_handler", "doze", turn=20, tasks=LOAD),
        *around("note", kind="remark"),
    ],
    "renew": [*around("renew_leases", kind="remark"), *around("renew_leases", **LONG_DOZE)],
    "look": around("lost_leases", **RARELY_RENEWED),
}
IDLE = [*around("mark_asleep", "listen"), Cell("after_hint")]
DRAINING = [Cell("before_drain", **HELD), *around("hand_back", "settle_batch", "retire_worker", **HELD)]
IN_ITS_SECOND: dict[str, Any] = {"kind": "deposit_apart", "tasks": 3, "turn": 2}
APART = [
    *around("attempt_apart", "commit", **IN_ITS_SECOND),
    Cell("after_answer_apart", "deposit_apart", tasks=2),
]
SUPERVISING = [Cell("after_start_workers", "doze"), *around("revive", kind="doze")]
STARTING = {
    "start": around("start_task"),
    "astart": around("start_task", kind="adeposit"),
    "start_many": [*around("stage_steps", "copy", "take_staged", "bulk_commit"), Cell("inside_copy")],
    "start_steps": around("start_run"),
}
SCHEDULING = [*around("fire_schedules", turn=2), *around("plan_schedules"), *around("define_schedule")]
ALL = [
    cell
    for cells in [*WORKING.values(), IDLE, DRAINING, APART, SUPERVISING, *STARTING.values(), SCHEDULING]
    for cell in cells
]  # fmt: skip
# Calls that are not in the matrix, and why.
NOT_KILLED = {
    **dict.fromkeys(
        ("cancel", "retry", "resolve", "park_steps", "unpark_steps", "pause_queue", "resume_queue"),
        "a wish of a person's is one statement: it is done or not, and who wished looks",
    ),
    **dict.fromkeys(
        ("pause_schedule", "resume_schedule", "run_schedule", "backfill_schedule", "forget_schedule"),
        "as with steps and queues: a wish of a person's is one statement",
    ),
    **dict.fromkeys(
        (
            "step_results",
            "run_results",
            "run_machine",
            "retry_waits",
            "halted_runs",
            "leases_left",
            "clock",
            "violations",
        ),
        "it only reads",
    ),
    **dict.fromkeys(("step_status", "run_status", "step_events", "run_events"), "it only reads"),
    "add_awaited": "test_flows.py kills before and after the commit of the settle that it is part of",
    **dict.fromkeys(("rescue_steps", "upkeep"), "workers rescue by measured_upkeep"),
    "start_step": "start_task calls it",
    "start_tasks": "for callers in SQL; in Python many are started by COPY",
}
ELSEWHERE = {
    "migrate_{migration.number}": "tests/migrations/test_migrate.py kills at each of them",
    **dict.fromkeys(
        ("before_shell", "after_shell", "after_program", "before_artifact", "after_artifact"),
        "tests/scenarios/test_ops.py kills at each of them (deploys_places.py)",
    ),
    **{
        f"{side}_{call}": "tests/scenarios/test_large_runs.py kills at each of them"
        for call in ("queue_run", "pause_run", "resume_run", "stop_run", "retry_steps", "move_chunk")
        for side in ("before", "after")
    },
    **dict.fromkeys(
        ("before_channel_write", "after_channel_write", "before_preview_commit", "after_preview_commit"),
        "tests/scenarios/test_rules.py kills at each of them (sales_places.py)",
    ),
    **dict.fromkeys(
        ("before_halving", "before_read_back", "after_read_back"),
        "tests/scenarios/test_outlets.py kills at each of them (outlets_places.py)",
    ),
    **dict.fromkeys(
        (
            "page_checked",
            "page_recorded",
            "correction_planned",
            "revert_planned",
            "scheduled_previewed",
            "scheduled_applied",
        ),
        "tests/scenarios/test_undo.py kills at each of them",
    ),
    **dict.fromkeys(
        ("page_fetched", "page_written", "run_cut", "batch_written", "run_ending"),
        "tests/ingest/test_kills.py kills at each of them",
    ),
    **{f"{side}_{call}": why for call, why in NOT_KILLED.items() for side in ("before", "after")},
}
