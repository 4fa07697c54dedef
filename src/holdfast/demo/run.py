"""The demo from its first task to its verdict; it passes one scene after the other to its display."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

from holdfast.demo import orders, story, workload
from holdfast.demo.judge import DemoResult, Finding, judge
from holdfast.demo.order_play import OrderPlay
from holdfast.demo.play import Play, Scene
from holdfast.demo.tick_play import ticking
from holdfast.reads import demo
from holdfast.reads.demo import Load, StepRecord
from holdfast.worker_processes import GroupOptions, worker_group

APP = "holdfast.demo.orders:hf"
CONCURRENCY = 8
SHORTEST_PLAY = 3.0  # seconds: longer than a lease, so that the others still work when it ends
LONGEST_TASK = 0.5


@dataclass(frozen=True, slots=True)
class Played:
    """The result of a demo."""

    load: Load
    evidence: list[StepRecord]
    verdict: DemoResult
    lines: list[story.Line]
    chosen: StepRecord | None
    order: UUID
    ordered: list[Finding]
    ticked: list[Finding]

    @property
    def findings(self) -> list[Finding]:
        """All figures, of the tasks, the order and the schedule."""
        return [*self.verdict.findings(), *self.ordered, *self.ticked]

    @property
    def holds(self) -> bool:
        """Return whether every figure is what it must be."""
        return all(finding.holds for finding in self.findings)


def start(connection: Connection[Any], count: int, workers: int) -> Load:
    """Start the tasks in their own queue, each short enough that the workers need some seconds for all."""
    workload.prepare(connection)
    seconds = min(LONGEST_TASK, SHORTEST_PLAY * workers * CONCURRENCY / count)
    return workload.start(connection, workload.new_queue(), count, seconds)


def play(dsn: str, connection: Connection[Any], started: Load, workers: int, show: Callable[[Scene], None]) -> Played:
    """Let workers run the tasks while one is killed and a schedule ticks, run an order, and judge what happened."""
    order: OrderPlay | None = None
    options = GroupOptions(dsn, APP, CONCURRENCY, "holdfast demo", {})
    with worker_group(options) as group, ticking(connection, started) as ticks:
        for _ in range(workers):
            group.start(started.queue, orders.QUEUE)
        showing = Play(connection, started, group)
        for scene in showing.run():
            show(scene)
            if scene.killed is not None:
                order = order or OrderPlay(connection, started.until)
                order.see_to_it()
        order = order or OrderPlay(connection, started.until)
        order.wait()
        ticks.wait()
    killed = showing.killed
    evidence = demo.evidence(connection, started, None if killed is None else killed.worker)
    chosen = story.choose(evidence)
    lines = [] if chosen is None else story.tell(connection, chosen.step_id)
    verdict = judge(started, evidence, killed=0 if killed is None else 1)
    return Played(started, evidence, verdict, lines, chosen, order.run_id, order.findings(), ticks.findings())
