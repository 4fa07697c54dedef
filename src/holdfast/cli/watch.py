"""Following a run or a step until it is over: a live view on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from holdfast.cli.common import DB
from holdfast.cli.render import data, data_json, data_line, plain, say
from holdfast.errors import WaitTimedOut
from holdfast.reads import run_detail
from holdfast.reads.run_detail import RunLook, StepLook

Form = Literal["live", "lines", "jsonl", "json"]
SOONEST, LATEST = 0.2, 2.0  # seconds between two looks: the longer nothing happens, the longer
SUCCEEDED, FAILED, PARTIAL, INTERRUPTED = 0, 1, 3, 130


@dataclass(frozen=True, slots=True)
class Glance:
    """How a run or a step stands, as far as a follower is told."""

    id: str
    what: str
    name: str
    state: str
    outcome: str | None
    is_over: bool
    attempt: int | None
    total: int | None
    live: int | None
    succeeded: int | None
    failed: int | None
    cancelled: int | None


def form(*, jsonl: bool, as_json: bool) -> Form:
    """Choose how changes are shown."""
    if jsonl or as_json:
        return "jsonl" if jsonl else "json"
    return "live" if Console().is_terminal else "lines"


def follow(connection: DB, id: int | UUID, *, timeout: timedelta | None, form: Form) -> None:  # noqa: A002
    """Show each change until it is over; ends with the exit code of how it ended."""
    with _shower(form) as show:
        last = wait_for(connection, id, timeout, show)
    if form == "json":
        data_json(last)
    raise typer.Exit(exit_code(last))


def wait_for(connection: DB, id: int | UUID, timeout: timedelta | None, show: Callable[[Glance], Any]) -> Glance:  # noqa: A002
    """Show each change until it is over, and give how it ended; Ctrl-C ends the watching and not what is watched."""
    last = glance(connection, id)
    try:
        show(last)
        for last in _changes(connection, id, last, timeout):  # noqa: B020 - the last one is what it ends with
            show(last)
    except KeyboardInterrupt:
        say(f"\nno longer watching; {last.what} {last.id} goes on. To stop it: holdfast runs cancel {last.id}")
        raise typer.Exit(INTERRUPTED) from None
    return last


def glance(connection: DB, id: int | UUID) -> Glance:  # noqa: A002 - the word is the same in SQL
    """Look once."""
    found = run_detail.step(connection, id) if isinstance(id, int) else run_detail.run(connection, id)
    return of_step(found) if isinstance(found, StepLook) else of_run(found)


def of_step(step: StepLook) -> Glance:
    """Take from a step what a follower is told."""
    what = "task" if step.run_id is None else "step"
    over = step.finished_at is not None
    outcome = step.outcome if over else None
    return Glance(
        step.id, what, step.kind, step.state, outcome, over, step.attempt, None, None, None, None, None
    )  # fmt: skip


def of_run(run: RunLook) -> Glance:
    """Take from a run what a follower is told; one whose steps are still being moved is not over."""
    over = run.finished_at is not None and run.moving is None
    counts = (run.total, run.live, run.succeeded, run.failed, run.cancelled)
    return Glance(run.id, "run", run.name, run.state, run.outcome if over else None, over, None, *counts)


def exit_code(seen: Glance) -> int:
    """Say by a number how it ended."""
    if seen.outcome == "succeeded":
        return SUCCEEDED
    return PARTIAL if seen.failed and seen.succeeded else FAILED


def line(seen: Glance) -> str:
    """Write how it stands in one line."""
    progress = f"attempt {seen.attempt}"
    if seen.total is not None:
        progress = (
            f"{seen.succeeded} of {seen.total} done, {seen.failed} failed, {seen.cancelled} cancelled, {seen.live} live"
        )
    return plain(f"{seen.what} {seen.id} {seen.name}: {seen.state}, {progress}")


def _changes(connection: DB, id: int | UUID, seen: Glance, timeout: timedelta | None) -> Iterator[Glance]:  # noqa: A002
    end = None if timeout is None else time.monotonic() + timeout.total_seconds()
    wait = SOONEST
    while not seen.is_over:
        left = None if end is None else end - time.monotonic()
        if left is not None and left <= 0:
            raise WaitTimedOut(
                f"{seen.what} {seen.id} is {seen.state} and not over yet; it goes on: watch it longer, "
                f"or stop it by `holdfast runs cancel {seen.id}`"
            )
        time.sleep(wait if left is None else min(wait, left))
        now = glance(connection, id)
        wait = SOONEST if now != seen else min(wait * 1.5, LATEST)
        if now != seen:
            yield now
        seen = now


@contextmanager
def _shower(form: Form) -> Iterator[Any]:
    match form:
        case "live":
            with Live(console=Console(), auto_refresh=False) as view:
                yield lambda seen: view.update(Text(line(seen)), refresh=True)
        case "lines":
            yield lambda seen: data(line(seen))
        case "jsonl":
            yield data_line
        case "json":
            yield lambda _: None
