"""The runs that commands act on: finds them, waits for them and prints what became of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

import typer

from holdfast.cli import watch as watching
from holdfast.cli.connection import opened
from holdfast.cli.render import data_json, data_pairs
from holdfast.cli.table import data_table
from holdfast.errors import NotFound
from holdfast.ingest import calls, reads
from holdfast.ingest.events import IngestExecutor
from holdfast.ingest.handle import IngestRun
from holdfast.kernel import db
from holdfast.kernel.call import Call
from holdfast.kernel.query import as_mapping


class Direct:
    """Makes the calls of a handle on the command's own connection."""

    def __init__(self, connection: reads.DB) -> None:
        self._connection = connection

    def make(self, call: Call[Any]) -> list[Any]:
        """Make a call."""
        return db.run(self._connection, call)


def act(feed: str, action: Callable[[UUID], Call[Any]], *, as_json: bool) -> None:
    """Act on the newest run of a feed, and print its state after that."""
    with opened() as connection:
        run = newest(connection, feed)
        db.run(connection, action(run.run_id))
        after = reads.newest_run(connection, feed)
    print_state(run.run_id, "" if after is None else after.state, as_json=as_json)


def wait_for_plan(connection: reads.DB, run_id: UUID, timeout: timedelta | None) -> None:
    """Watch the task that plans a run; leave with its exit code if there will be no run."""
    (step_id,) = db.run(connection, calls.planning_step(run_id))
    if step_id is not None:
        last = watching.wait_beside(connection, step_id, timeout)
        if last.outcome != "succeeded":
            raise typer.Exit(watching.exit_code(last))


def newest(connection: reads.DB, feed: str) -> reads.RunRow:
    """Return the newest run of a feed; raise NotFound if there is none."""
    run = reads.newest_run(connection, feed)
    if run is None:
        raise NotFound(f"feed {feed} has no runs", where=feed, next=f"holdfast ingest run {feed}")
    return run


def started(connection: reads.DB, run_id: UUID, *, wait: bool, timeout: timedelta | None, as_json: bool) -> None:
    """Print a run that was started, or wait for it and print its counts."""
    if not wait:
        print_state(run_id, "planning", as_json=as_json)
        return
    summary = IngestRun(run_id, cast("IngestExecutor", Direct(connection))).result(timeout)
    if as_json:
        data_json({"run_id": run_id, **as_mapping(summary)})
    else:
        data_pairs({"run": run_id, **as_mapping(summary)})


def print_state(run_id: UUID, state: str, *, as_json: bool) -> None:
    """Print a run and its state."""
    if as_json:
        data_json({"run_id": run_id, "state": state})
    else:
        data_table(("run", "state"), [(run_id, state)])
