"""Shows the demo and reports it: the figures, one task's story, and the commands that show more."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import UTC
from typing import Any

import typer
from psycopg import Connection

from holdfast.cli.database import opened_database
from holdfast.cli.demo_view import showing
from holdfast.cli.render import data, data_json, data_table, say
from holdfast.cli.settings import load
from holdfast.config import Config
from holdfast.connections.deadline import connection_to
from holdfast.demo import run
from holdfast.demo.run import Played
from holdfast.kernel import migrate
from holdfast.reads.demo import Load, added, standings

CHECK_FAILED, INTERRUPTED = 9, 130


def show(*, tasks: int, workers: int, as_json: bool) -> None:
    """Run the demo and report it; ends with the exit code that the verdict has."""
    settings = load()
    with opened_database(settings) as dsn, connection_to(dsn) as connection:
        _migrate(connection, settings, dsn)
        began_at = time.monotonic()
        started = run.start(connection, tasks, workers)
        try:
            with showing(started, workers) as show_scene:
                played = run.play(dsn, connection, started, workers, show_scene)
        except KeyboardInterrupt:
            _say_what_stays(connection, started)
            raise typer.Exit(INTERRUPTED) from None
        if as_json:
            _report_json(played, round(time.monotonic() - began_at, 1))
        else:
            _report(played)
    raise typer.Exit(0 if played.holds else CHECK_FAILED)


def _migrate(connection: Connection[Any], settings: Config, dsn: str) -> None:
    """Bring the embedded database up to date; another is not ours to change."""
    if settings.dsn is None:
        migrate.run(dsn)
    migrate.check(connection)


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


def _report_json(played: Played, seconds: float) -> None:
    figures = {**asdict(played.verdict), "holds": played.holds, "seconds": seconds}
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
    whole = added(standings(connection, started))
    say(
        f"interrupted; the workers are stopped. {whole.over:,} tasks are over, {whole.total - whole.over:,} stay queued"
    )
    say(f"go on with them: holdfast worker --app {run.APP} --queue {started.queue} --burst")
