"""Shows the demo while it runs (on stderr: a live table, or one line per second), and reports what it proved."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC
from typing import Any

import typer
from psycopg import Connection
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from holdfast import log
from holdfast.cli.connection import as_typed, load_settings, opened_database
from holdfast.cli.render import data, data_json, is_quiet, say
from holdfast.cli.table import data_table
from holdfast.config import Config
from holdfast.connections.deadline import connection_to
from holdfast.demo import run
from holdfast.demo.feeds import FEED
from holdfast.demo.play import Killed, Scene
from holdfast.demo.run import Played
from holdfast.demo.shops import LIMIT
from holdfast.kernel import migrate
from holdfast.reads.demo import Load, Standing, added, standings

CHECK_FAILED, INTERRUPTED = 9, 130
LINE_EACH = 1.0  # seconds
WATCHED = 3  # lines of the deployment
COLUMNS = ("queued", "running", "done", "retried", "failed")
STYLES = {"running": "cyan", "done": "green", "retried": "yellow", "failed": "red"}


def show(*, tasks: int, workers: int, as_json: bool) -> None:
    """Run the demo and report it; exit with the code of the verdict."""
    settings = load_settings()
    log.configure("error", settings.log_format)  # the receiver's warning about a wrong signature is part of the demo
    holdfast = as_typed(settings)
    with opened_database(settings) as dsn, connection_to(dsn) as connection:
        _migrate(connection, settings, dsn)
        began_at = time.monotonic()
        started = run.start(connection, tasks, workers)
        try:
            with showing(started, workers) as show_scene:
                played = run.play(dsn, connection, started, workers, show_scene)
        except KeyboardInterrupt:
            _say_what_stays(connection, started, holdfast)
            raise typer.Exit(INTERRUPTED) from None
        if not played.pushed:
            say("pushes are not shown: they need pip install 'holdfast-pg[api]'")
        if not played.outlet:
            say("the outlet is not shown: it needs pip install 'holdfast-pg[sim,http]'")
        if as_json:
            _report_json(played, round(time.monotonic() - began_at, 1))
        else:
            _report(played, holdfast)
    raise typer.Exit(0 if played.holds else CHECK_FAILED)


def _migrate(connection: Connection[Any], settings: Config, dsn: str) -> None:
    """Migrate the embedded database; do not change any other."""
    if settings.dsn is None:
        migrate.run(dsn)
    migrate.check(connection)


def _report(played: Played, holdfast: str) -> None:
    rows = [(one.what, f"{one.count:,}", one.mark, one.meaning) for one in played.findings]
    data("")
    data_table(("", "count", "", "must be"), rows, styles={"✓": "bold green", "✗": "bold red"})
    if played.chosen is not None:
        data(f"\nThe story of task {played.chosen.step_id} ({played.chosen.kind}), from the journal:")
    for line in played.lines:
        at = line.at.astimezone(UTC)
        data(f"  {at:%H:%M:%S.%f}  +{line.since.total_seconds():6.3f} s  {line.state:<8}  {line.what}")
    data("\nLook further:")
    for command, meaning in _commands(played):
        data(f"  {holdfast} {command}  # {meaning}")


def _report_json(played: Played, seconds: float) -> None:
    figures = {**asdict(played.verdict), "holds": played.holds, "seconds": seconds}
    ordered = {one.what.removeprefix("order: ").replace(" ", "_"): one.count for one in played.ordered}
    story = [{"at": line.at, "state": line.state, "what": line.what} for line in played.lines]
    shown = None if played.chosen is None else str(played.chosen.step_id)
    order = {"id": str(played.order), **ordered}
    shops = {one.what.removeprefix("shops: ").replace(" ", "_"): one.count for one in played.shops}
    ticks = {one.what.removeprefix("schedule: ").replace(" ", "_"): one.count for one in played.ticked}
    schedule = {"name": played.load.queue, **ticks}
    figures_of_pushes = {one.what.removeprefix("pushes: ").replace(" ", "_"): one.count for one in played.pushed}
    pushes = {"run_id": played.deployed, **figures_of_pushes}
    figures_of_sale = {one.what.removeprefix("sale: ").replace(" ", "_"): one.count for one in played.sold}
    sale = {"ruleRunId": str(played.sale), **figures_of_sale}
    feed = {one.what.removeprefix("feed: ").replace(" ", "_"): one.count for one in played.fed}
    labels = {one.what.removeprefix("labels: ").replace(" ", "_"): one.count for one in played.labelled}
    figures_of_outlet = {one.what.removeprefix("outlet: ").replace(" ", "_"): one.count for one in played.outlet}
    outlet = {"ruleRunId": None if played.outlet_run is None else str(played.outlet_run), **figures_of_outlet}
    beside = {"order": order, "shops": shops, "schedule": schedule, "pushes": pushes, "sale": sale, "outlet": outlet}
    told = {"feed": feed, "labels": labels, "story_of": shown, "story": story}
    data_json({**figures, "queue": played.load.queue, **beside, **told})


def _commands(played: Played) -> list[tuple[str, str]]:
    """Return the commands that show more of what has just happened."""
    shown = played.chosen or played.evidence[0]
    outlet = []
    if played.outlet_run is not None:
        outlet = [
            (f"rules status {played.outlet_run}", "the sale in the simulated shop, and what was rolled back of it"),
            (f"rules drift {played.outlet_run}", "what the pass found there"),
        ]
    deployed = [] if played.deployed is None else [(f"ops logs {played.deployed}", "what the deployment printed")]
    return [
        (f"runs show {shown.step_id}", "the history of one task"),
        (f"flow show {played.order}", "the order, with its steps and their outcomes"),
        (f"flow graph {played.order}", "the same as a drawing"),
        (f"limits show '{LIMIT}'", "the limit of the shops, and when it was closed"),
        *deployed,
        (f"rules show {played.sale}", "the sale: its plan, and what was not applied"),
        *outlet,
        (f"ingest status {FEED}", "the feed: its window, its watermark and the counts of its last run"),
        (f"dlq report --queue {played.load.queue}", "what failed for good, and why"),
        ("workers --all", "the workers, with when each was last seen"),
        ("db psql -c 'table holdfast.queue_list'", "what waits in each queue"),
        ("doctor", "whether every invariant holds"),
    ]


def _say_what_stays(connection: Connection[Any], started: Load, holdfast: str) -> None:
    whole = added(standings(connection, started))
    say(f"interrupted; the workers are stopped. {whole.over:,} tasks ended, {whole.total - whole.over:,} stay queued")
    say(f"to run them: {holdfast} worker --app {run.APP} --queue {started.queue} --burst")


@contextmanager
def showing(load: Load, workers: int) -> Iterator[Callable[[Scene], None]]:
    """Yield the display of scenes that suits the terminal."""
    console = Console(stderr=True, highlight=False)
    title = f"{load.asked:,} tasks, {workers} workers, queue {load.queue}"
    if is_quiet() or not console.is_terminal:
        say(title)
        yield Lines().show
        return
    with Live(console=console, auto_refresh=False) as live:
        yield lambda scene: live.update(_view(title, scene), refresh=True)


class Lines:
    """The display for logs and pipes: one line per second, and one per event."""

    def __init__(self) -> None:
        self._next_at = 0.0
        self._is_over = False
        self._told: set[str] = set()

    def show(self, scene: Scene) -> None:
        """Print what is new."""
        if scene.killed is not None:
            self._once(f"killed with -9: {_deed(scene.killed)}")
            if not scene.killed.waiting:
                self._once(f"taken over: {_fate(scene.killed)}")
        for line in scene.watched:
            self._once(f"deployment: {line}")
        is_over = scene.all.over == scene.all.total
        if scene.seconds >= self._next_at or (is_over and not self._is_over):
            self._is_over = is_over
            self._next_at = scene.seconds + LINE_EACH
            counts = "  ".join(f"{column} {getattr(scene.all, column):>5,}" for column in COLUMNS)
            say(f"{scene.seconds:5.1f} s  {counts}  {scene.rate:6,.0f} tasks/s")

    def _once(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            say(line)


def _view(title: str, scene: Scene) -> Group:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("task")
    table.add_column("", width=24)
    for column in COLUMNS:
        table.add_column(column, justify="right", width=8)
    for one in (*scene.kinds, scene.all):
        table.add_row(_name(one), ProgressBar(one.total or 1, one.over, width=24), *_cells(one))
    return Group(
        Text(f"Holdfast demo: {title}", style="bold"),
        Text(),
        table,
        Text(),
        Text(f"{scene.rate:,.0f} tasks/s now, {scene.mean_rate:,.0f} on average, {scene.seconds:.1f} s"),
        _killed(scene.killed),
        *(Text(f"deployment: {line}", style="dim") for line in scene.watched[-WATCHED:]),
    )


def _cells(one: Standing) -> list[Text]:
    counts = {column: int(getattr(one, column)) for column in COLUMNS}
    return [Text(f"{count:,}", style=STYLES.get(column, "") if count else "dim") for column, count in counts.items()]


def _name(one: Standing) -> Text:
    return Text(one.kind.removeprefix("demo."), style="bold" if one.kind == "all" else "")


def _killed(killed: Killed | None) -> Text:
    if killed is None:
        return Text("one of the workers will be killed with -9", style="dim")
    return Text.assemble(("killed with -9: ", "bold red"), _deed(killed), "; ", (_fate(killed), "bold"))


def _deed(killed: Killed) -> str:
    return f"{killed.name} (process {killed.pid}) while it held {killed.held} tasks"


def _fate(killed: Killed) -> str:
    if killed.waiting:
        return f"{killed.waiting} wait for their leases to run out"
    return f"all {killed.held} were recovered after their leases expired, and other workers ran them"
