"""What the demo shows while it goes: a live table on a terminal, a line each second elsewhere; always on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from holdfast.cli.render import is_quiet, say
from holdfast.demo.play import Killed, Scene
from holdfast.reads.demo import Load, Standing

LINE_EACH = 1.0  # seconds
COLUMNS = ("queued", "running", "done", "retried", "failed")
STYLES = {"running": "cyan", "done": "green", "retried": "yellow", "failed": "red"}


@contextmanager
def showing(load: Load, workers: int) -> Iterator[Callable[[Scene], None]]:
    """Give what shows a scene, as the terminal can have it."""
    console = Console(stderr=True, highlight=False)
    title = f"{load.asked:,} tasks, {workers} workers, queue {load.queue}"
    if is_quiet() or not console.is_terminal:
        say(title)
        yield Lines().show
        return
    with Live(console=console, auto_refresh=False) as live:
        yield lambda scene: live.update(_view(title, scene), refresh=True)


class Lines:
    """For logs and pipes: a line a second, and one for each thing that happens."""

    def __init__(self) -> None:
        self._next_at = 0.0
        self._told: set[str] = set()

    def show(self, scene: Scene) -> None:
        """Say what is new."""
        if scene.killed is not None:
            self._once(f"killed with -9: {_deed(scene.killed)}")
            if not scene.killed.waiting:
                self._once(f"taken over: {_fate(scene.killed)}")
        is_over = scene.all.over == scene.all.total
        if scene.seconds >= self._next_at or is_over:
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
    return f"all {killed.held} were taken back when their leases had run out, and went to the others"
