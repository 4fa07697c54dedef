"""The demo itself: tasks, a worker killed in the middle, and proof that nothing was lost or accepted twice."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from datetime import UTC
from typing import Any
from uuid import UUID

import typer
from psycopg import Connection

from holdfast.cli.database import opened_database
from holdfast.cli.demo_view import showing
from holdfast.cli.render import data, data_json, data_table, say
from holdfast.cli.settings import load as load_settings
from holdfast.config import Config
from holdfast.connections.deadline import connection_to
from holdfast.demo import orders, story, workload
from holdfast.demo.figures import added, read
from holdfast.demo.judge import DemoResult, Finding, StepRecord, gather, judge
from holdfast.demo.order_play import OrderPlay
from holdfast.demo.play import Play
from holdfast.demo.workload import Load
from holdfast.kernel import migrate
from holdfast.worker_processes import GroupOptions, worker_group

CHECK_FAILED, INTERRUPTED = 9, 130
APP = "holdfast.demo.orders:hf"
CONCURRENCY = 8
SHORTEST_PLAY = 3.0  # seconds: longer than a lease runs, so that the others are still at work when it ends
LONGEST_TASK = 0.5


@dataclass(frozen=True, slots=True)
class Played:
    """What a showing gave."""

    load: Load
    evidence: list[StepRecord]
    verdict: DemoResult
    lines: list[story.Line]
    chosen: StepRecord | None
    order: UUID
    ordered: list[Finding]
    seconds: float

    @property
    def findings(self) -> list[Finding]:
        """All figures, of the tasks and of the order."""
        return [*self.verdict.findings(), *self.ordered]

    @property
    def holds(self) -> bool:
        """Whether every figure is what it must be."""
        return all(finding.holds for finding in self.findings)


def show(*, tasks: int, workers: int, as_json: bool) -> None:
    """Run the demo and report it; ends with the exit code that the verdict has."""
    settings = load_settings()
    with opened_database(settings) as dsn, connection_to(dsn) as connection:
        _migrate(connection, settings, dsn)
        played = _played(dsn, connection, tasks, workers)
        if as_json:
            _report_json(played)
        else:
            _report(played)
    raise typer.Exit(0 if played.holds else CHECK_FAILED)


def _migrate(connection: Connection[Any], settings: Config, dsn: str) -> None:
    """Bring the embedded database up to date; another is not ours to change."""
    if settings.dsn is None:
        migrate.run(dsn)
    migrate.check(connection)


def _played(dsn: str, connection: Connection[Any], count: int, size: int) -> Played:
    began_at = time.monotonic()
    workload.prepare(connection)
    queue = workload.new_queue()
    seconds = min(LONGEST_TASK, SHORTEST_PLAY * size * CONCURRENCY / count)
    started = workload.start(connection, queue, count, seconds)
    order: OrderPlay | None = None
    try:
        with (
            worker_group(GroupOptions(dsn, APP, CONCURRENCY, "holdfast demo", {})) as group,
            showing(started, size) as see,
        ):
            for _ in range(size):
                group.start(queue, orders.QUEUE)
            play = Play(connection, started, group)
            for scene in play.run():
                see(scene)
                if scene.killed is not None:
                    order = order or OrderPlay(connection, started.until)
                    order.see_to_it()
            order = order or OrderPlay(connection, started.until)
            order.wait()
    except KeyboardInterrupt:
        _say_what_stays(connection, started)
        raise typer.Exit(INTERRUPTED) from None
    killed = play.killed
    evidence = gather(connection, started, None if killed is None else killed.worker)
    chosen = story.choose(evidence)
    lines = [] if chosen is None else story.tell(connection, chosen.step_id)
    verdict = judge(started, evidence, killed=0 if killed is None else 1)
    seconds = time.monotonic() - began_at
    return Played(started, evidence, verdict, lines, chosen, order.task_id, order.findings(), seconds)


def _report(played: Played) -> None:
    rows = [(one.what, f"{one.count:,}", one.mark, one.meaning) for one in played.findings]
    data("")
    data_table(("", "count", "", "must be"), rows, styles={"✓": "bold green", "✗": "bold red"})
    if played.chosen is not None:
        data(f"\nThe story of task {played.chosen.step_id} ({played.chosen.kind}), from the journal:")
    for line in played.lines:
        at = line.at.astimezone(UTC)
        data(f"  {at:%H:%M:%S.%f}  +{line.since.total_seconds():6.3f} s  {line.state:<8}  {line.what}")
    data("\nLook further:")
    commands = _commands(played)
    width = max(len(command) for command, _ in commands)
    for command, meaning in commands:
        data(f"  {command:<{width}}  {meaning}")


def _report_json(played: Played) -> None:
    figures = {**asdict(played.verdict), "holds": played.holds, "seconds": round(played.seconds, 1)}
    ordered = {one.what.removeprefix("order: ").replace(" ", "_"): one.count for one in played.ordered}
    told = [{"at": line.at, "state": line.state, "what": line.what} for line in played.lines]
    shown = None if played.chosen is None else str(played.chosen.step_id)
    order = {"id": str(played.order), **ordered}
    data_json({**figures, "queue": played.load.queue, "order": order, "story_of": shown, "story": told})


def _commands(played: Played) -> list[tuple[str, str]]:
    """Name the commands that show more of what has just happened."""
    shown = played.chosen or played.evidence[0]
    return [
        (f"holdfast runs show {shown.step_id}", "one task's whole story"),
        (f"holdfast flow show {played.order}", "the order: its steps, and what became of each"),
        (f"holdfast flow graph {played.order}", "the same as a picture"),
        (f"holdfast dlq report --queue {played.load.queue}", "what failed for good, and why"),
        ("holdfast workers", "who is there; the killed one was seen last when it was killed"),
        ("holdfast db psql -c 'table holdfast.queue_list'", "what waits where"),
        ("holdfast doctor", "whether every invariant holds"),
    ]


def _say_what_stays(connection: Connection[Any], started: Load) -> None:
    whole = added(read(connection, started))
    say(
        f"interrupted; the workers are stopped. {whole.over:,} tasks are over, {whole.total - whole.over:,} stay queued"
    )
    say(f"go on with them: holdfast worker --app {APP} --queue {started.queue} --burst")
