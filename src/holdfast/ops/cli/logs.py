"""`holdfast ops logs` and `wait`: the events of a run as they appear, and its end."""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from typing import Annotated

import typer

from holdfast.cli.connection import DB, opened
from holdfast.cli.options import parse_duration
from holdfast.cli.render import AsJson, data, data_json, data_line, say
from holdfast.errors import WaitTimedOut
from holdfast.ops import reads
from holdfast.ops.cli.parts import RunId, as_document, event_document, event_lines
from holdfast.ops.folds import Folds
from holdfast.ops.rows import OVER, Run, RunEvent

LOOK_EACH = 0.25  # seconds: a line appears within one
WAIT = timedelta(seconds=1200)
LAST_EVENTS = 5
SUCCEEDED, FAILED, INTERRUPTED = 0, 1, 130
EXAMPLE = "Example: holdfast ops logs -f RUN"


def logs(
    run: RunId,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow it until it ends.")] = False,
    tail: Annotated[int | None, typer.Option("--tail", "-n", min=1, max=100_000, help="Only the last events.")] = None,
    times: Annotated[bool, typer.Option("--times", help="Print the time of each line, in UTC.")] = False,
    fold: Annotated[bool, typer.Option("--fold", help="Leave out the lines of groups, and count them.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the events of a run: the output of its programs as it is, and everything else that happened to it.

    With --json each event is one line of JSON.
    """
    folds = Folds(is_folded=fold)

    def show(events: list[RunEvent]) -> int:
        for event in events:
            if as_json:
                data_line(event_document(event))
                continue
            for line in event_lines(event, folds, with_time=times):
                data(line)
        sys.stdout.flush()
        return events[-1].id if events else 0

    try:
        with opened() as connection:
            row = reads.run_of(connection, run)
            after = 0 if tail is None else show(reads.last_events(connection, row.step_id, limit=tail))
            if tail is None or follow:
                _print_from(connection, row, after, show, follow=follow)
    except KeyboardInterrupt:
        say(f"\nno longer following; the run continues. To stop it: holdfast ops cancel {run}")
        raise typer.Exit(INTERRUPTED) from None
    for line in folds.close():
        data(line)


def _print_from(connection: DB, run: Run, after: int, show: object, *, follow: bool) -> None:
    assert callable(show)  # noqa: S101 - for the type checker
    while True:
        is_over = (
            reads.status_of(connection, run.step_id) or "cancelled"
        ) in OVER  # before the events, so none is missed
        while events := reads.events_after(connection, run.step_id, after):
            after = show(events)
        if is_over or not follow:
            return
        time.sleep(LOOK_EACH)


def wait(
    run: RunId,
    *,
    timeout: Annotated[
        timedelta, typer.Option("--timeout", parser=parse_duration, metavar="DURATION", help="How long to wait.")
    ] = WAIT,
    as_json: AsJson = False,
) -> None:
    """Wait until a run ends, and print its last five events.

    Exit codes: 0 it succeeded, 1 it failed or was cancelled, 8 it did not end in time.
    """
    try:
        with opened() as connection:
            row = _wait(connection, reads.run_of(connection, run), timeout)
            events = reads.last_events(connection, row.step_id, limit=LAST_EVENTS)
    except KeyboardInterrupt:
        say(f"\nno longer waiting; the run continues. To stop it: holdfast ops cancel {run}")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        data_json({"run": as_document(row), "events": [event_document(event) for event in events]})
    else:
        folds = Folds()
        for event in events:
            for line in event_lines(event, folds, with_time=True):
                data(line)
    if not row.is_over:
        raise WaitTimedOut(
            f"run {row.run_id} is {row.status} and did not end within {timeout}",
            where=row.run_id,
            next=f"it continues, follow it with: holdfast ops logs -f {row.run_id}",
        )
    raise typer.Exit(SUCCEEDED if row.status == "success" else FAILED)


def _wait(connection: DB, run: Run, timeout: timedelta) -> Run:
    """Wait until the run is over or the time is up, and return it as it is then."""
    until = time.monotonic() + timeout.total_seconds()
    shown = None
    while True:
        run = reads.run_of(connection, run.run_id)
        if run.status != shown:
            shown = run.status
            say(f"{run.run_id}: {run.status}")
        left = until - time.monotonic()
        if run.is_over or left <= 0:
            return run
        time.sleep(min(LOOK_EACH, left))
