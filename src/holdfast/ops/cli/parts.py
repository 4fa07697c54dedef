"""What several commands of `holdfast ops` share: arguments, cells and the lines of events."""

from __future__ import annotations

import json
from datetime import UTC
from typing import Annotated, Any

import typer

from holdfast.cli.options import matching
from holdfast.cli.render import Styled, plain
from holdfast.kernel.query import as_mapping
from holdfast.ops import reads
from holdfast.ops.folds import Folds
from holdfast.ops.rows import Run, RunEvent

STYLES = {
    "queued": ("", "…"),
    "claimed": ("cyan", "▸"),
    "running": ("cyan", "▸"),
    "success": ("green", "✓"),
    "failed": ("red", "✗"),
    "cancelled": ("yellow", "-"),
}


def runs(incomplete: str) -> list[str]:
    """Complete the id of a recent run."""
    return matching(reads.recent_ids(), incomplete)


RunId = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, run-….", autocompletion=runs)]
RunIds = Annotated[list[str], typer.Argument(metavar="RUN…", help="Runs' ids.", autocompletion=runs)]
Actor = Annotated[str | None, typer.Option("--actor", help="The person that you act for; by default your login.")]


def status_cell(status: str) -> Styled:
    """Return a status as a cell: word, colour and sign."""
    style, sign = STYLES.get(status, ("", ""))
    return Styled(status, style, sign)


def as_document(run: Run) -> dict[str, Any]:
    """Return a run as a mapping for JSON output; ids are text."""
    return {**as_mapping(run), "step_id": str(run.step_id)}


def event_document(event: RunEvent) -> dict[str, Any]:
    """Return an event as a mapping for JSON output."""
    fields = as_mapping(event)
    del fields["id"]
    return fields


def event_lines(event: RunEvent, folds: Folds, *, with_time: bool) -> list[str]:
    """Format an event as lines: the output of a program as it is, anything else with its level."""
    payload = json.loads(event.payload)
    at = f"{event.created_at.astimezone(UTC):%H:%M:%S} " if with_time else ""
    if isinstance(payload, dict) and "stream" in payload:
        return [at + plain(line, keep="\t") for line in folds.feed(event.message)]
    level = "" if event.level == "info" else f"{event.level}: "
    return [f"{at}{level}{plain(line)}" for line in event.message.split("\n")]
