"""Following a run or a step until it is over: a live view on a terminal, lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from holdfast.cli.connection import DB
from holdfast.cli.render import data, data_json, data_line, plain, say
from holdfast.cli.run_page import state_cell
from holdfast.reads import follow
from holdfast.reads.follow import Glance

Form = Literal["live", "lines", "jsonl", "json"]
SUCCEEDED, FAILED, PARTIAL, INTERRUPTED = 0, 1, 3, 130


def form(*, jsonl: bool, as_json: bool) -> Form:
    """Choose how changes are shown."""
    if jsonl or as_json:
        return "jsonl" if jsonl else "json"
    return "live" if Console().is_terminal else "lines"


def watch(connection: DB, id: int | UUID, *, timeout: timedelta | None, form: Form) -> None:  # noqa: A002
    """Show each change until it is over; ends with the exit code of how it ended."""
    with _shower(form) as show:
        last = wait_for(connection, id, timeout, show)
    if form == "json":
        data_json(last)
    raise typer.Exit(exit_code(last))


def wait_for(connection: DB, id: int | UUID, timeout: timedelta | None, show: Callable[[Glance], Any]) -> Glance:  # noqa: A002
    """Show each change until it is over, and give how it ended; Ctrl-C ends the watching and not what is watched."""
    last: Glance | None = None
    try:
        for last in follow.changes(connection, id, timeout):
            show(last)
    except KeyboardInterrupt:
        if last is not None:
            say(f"\nno longer watching; {last.what} {last.id} goes on. To stop it: holdfast runs cancel {last.id}")
        raise typer.Exit(INTERRUPTED) from None
    assert last is not None  # noqa: S101 - it gives at least how it stands
    return last


def exit_code(last: Glance) -> int:
    """Say by a number how it ended."""
    if last.outcome == "succeeded":
        return SUCCEEDED
    return PARTIAL if last.is_partial else FAILED


def line(glance: Glance) -> str:
    """Write how it stands in one line."""
    progress = f"attempt {glance.attempt}"
    if glance.total is not None:
        progress = (
            f"{glance.succeeded} of {glance.total} done, {glance.failed} failed, {glance.cancelled} cancelled, "
            f"{glance.live} live"
        )
    return plain(f"{glance.what} {glance.id} {glance.name}: {glance.state}, {progress}")


@contextmanager
def _shower(form: Form) -> Iterator[Any]:
    match form:
        case "live":
            with Live(console=Console(), auto_refresh=False) as view:
                yield lambda glance: view.update(Text(line(glance), style=state_cell(glance).style), refresh=True)
        case "lines":
            yield lambda glance: data(line(glance))
        case "jsonl":
            yield data_line
        case "json":
            yield lambda _: None
