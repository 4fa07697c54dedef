"""The demo from its first task to its verdict; it passes one scene after the other to its display."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from psycopg import Connection

from holdfast.demo import deploys, orders, sales, story, workload
from holdfast.demo.feed_play import FeedPlay
from holdfast.demo.judge import DemoResult, Finding, judge
from holdfast.demo.label_play import LabelPlay
from holdfast.demo.order_play import OrderPlay
from holdfast.demo.outlet_play import OutletPlay, selling
from holdfast.demo.play import Play, Scene
from holdfast.demo.push_play import PushPlay, receiving
from holdfast.demo.sale_play import SalePlay
from holdfast.demo.shop_play import ShopPlay
from holdfast.demo.tick_play import ticking
from holdfast.reads import demo
from holdfast.reads.demo import Load, StepRecord
from holdfast.worker_processes import GroupOptions, worker_group

APP = "holdfast.demo.app:hf"
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
    shops: list[Finding]
    ticked: list[Finding]
    pushed: list[Finding]  # none without the extra `api`
    deployed: str | None  # the run of the first push
    sold: list[Finding]
    sale: UUID
    fed: list[Finding]
    labelled: list[Finding]
    outlet: list[Finding]  # none without the extras `sim` and `http`
    outlet_run: UUID | None

    @property
    def findings(self) -> list[Finding]:
        """All figures: of the tasks, and of all that was played beside them."""
        beside = [*self.ordered, *self.shops, *self.ticked, *self.pushed, *self.sold, *self.fed, *self.labelled]
        beside += self.outlet
        return [*self.verdict.findings(), *beside]

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
    """Let workers run the tasks while one is killed, with all else beside them, and judge what happened."""
    shops = ShopPlay(connection, started.queue)
    sale = SalePlay(connection, started.queue)
    labels = LabelPlay(connection, started.queue)
    options = GroupOptions(dsn, APP, CONCURRENCY, "holdfast demo", {})
    with (
        receiving(dsn) as port,
        selling(started.queue) as shop,
        worker_group(options) as group,
        ticking(connection, started) as ticks,
    ):
        for _ in range(workers):
            group.start(deploys.QUEUE, started.queue, orders.QUEUE, sales.QUEUE)
        feed = FeedPlay(connection, started.queue, group)
        outlet = None if shop is None else OutletPlay(dsn, shop, group)
        showing = Play(connection, started, group)
        beside = Beside(connection, started, port)
        for scene in showing.run():
            last = scene
            sale.see_to_it()
            feed.see_to_it()
            if outlet is not None:
                outlet.see_to_it()
            show(replace(scene, watched=beside.see_to_it(is_begun=scene.killed is not None)))
        for watched in beside.wait():
            show(replace(last, watched=watched))
        shops.wait()
        sale.wait()
        feed.wait()
        labels.wait()
        if outlet is not None:
            outlet.wait()
        ticks.wait()
    killed = showing.killed
    evidence = demo.evidence(connection, started, None if killed is None else killed.worker)
    chosen = story.choose(evidence)
    lines = [] if chosen is None else story.tell(connection, chosen.step_id)
    verdict = judge(started, evidence, killed=0 if killed is None else 1)
    order, pushes = beside.order, beside.pushes
    parts = order.findings(), shops.findings(), ticks.findings(), [] if pushes is None else pushes.findings()
    deployed = None if pushes is None else pushes.run_id
    told = sale.findings(), sale.run_id, feed.findings(), labels.findings()
    sold = ([], None) if outlet is None else (outlet.findings(), outlet.run_id)
    return Played(started, evidence, verdict, lines, chosen, order.run_id, *parts, deployed, *told, *sold)


class Beside:
    """What begins after the kill: the order and the pushes."""

    def __init__(self, connection: Connection[Any], started: Load, port: int | None) -> None:
        self._connection = connection
        self._started = started
        self._port = port
        self._order: OrderPlay | None = None
        self.pushes: PushPlay | None = None  # None without the extra `api`

    @property
    def order(self) -> OrderPlay:
        """The order; begin it and the pushes if that has not happened yet."""
        if self._order is None:
            self._order = OrderPlay(self._connection, self._started.until)
            if self._port is not None:
                self.pushes = PushPlay(self._connection, self._started, self._port)
        return self._order

    def see_to_it(self, *, is_begun: bool) -> Sequence[str]:
        """Do what a person would do now; return what the deployment has printed."""
        if is_begun:
            self.order.see_to_it()
        if self.pushes is None:
            return ()
        self.pushes.see_to_it()
        return tuple(self.pushes.watched)

    def wait(self) -> Iterator[Sequence[str]]:
        """Wait until all of it has ended; yield what the deployment has printed."""
        order = self.order
        for _ in () if self.pushes is None else self.pushes.wait():
            order.see_to_it()
            yield () if self.pushes is None else tuple(self.pushes.watched)
        order.wait()
