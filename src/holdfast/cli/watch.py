"""Follows a run or a step until it ends: a live view on a terminal, lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from holdfast.cli.connection import DB
from holdfast.cli.render import data, data_json, data_line, is_quiet, plain, say
from holdfast.cli.run_page import state_cell
from holdfast.reads import follow
from holdfast.reads.follow import Glance, StepGlance

Form = Literal["live", "lines", "jsonl", "json"]
SUCCEEDED, FAILED, PARTIAL, INTERRUPTED = 0, 1, 3, 130
BAR = 20  # characters
FIRST_SHOWN = ("held", "later", "due")  # shown first if there is no room for all steps


def form(*, jsonl: bool, as_json: bool) -> Form:
    """Choose the display of changes."""
    if jsonl or as_json:
        return "jsonl" if jsonl else "json"
    return "live" if Console().is_terminal else "lines"


def watch(connection: DB, id: int | UUID, *, timeout: timedelta | None, form: Form) -> None:  # noqa: A002
    """Show each change until it ends; exit with the code of its outcome."""
    with _shower(form) as show:
        last = wait_for(connection, id, timeout, show, with_steps=form == "live")
    if form == "json":
        data_json(as_document(last))
    raise typer.Exit(exit_code(last))


def wait_beside(connection: DB, id: int | UUID, timeout: timedelta | None) -> Glance:  # noqa: A002
    """Wait until it ends, and show the changes on stderr: live on a terminal, one line per change elsewhere."""
    console = Console(stderr=True, highlight=False)
    if is_quiet() or not console.is_terminal:
        return wait_for(connection, id, timeout, lambda seen: say(line(seen)))
    with _live(console) as show:
        return wait_for(connection, id, timeout, show, with_steps=True)


def wait_for(
    connection: DB,
    id: int | UUID,  # noqa: A002 - the word is the same in SQL
    timeout: timedelta | None,
    show: Callable[[Glance], Any],
    *,
    with_steps: bool = False,
) -> Glance:
    """Show each change until it ends, and return the last state; Ctrl-C ends only the watching."""
    last: Glance | None = None
    try:
        for last in follow.changes(connection, id, timeout, with_steps=with_steps):
            show(last)
    except KeyboardInterrupt:
        if last is not None:
            say(f"\nno longer watching; {last.what} {last.id} continues. To stop it: holdfast runs cancel {last.id}")
        raise typer.Exit(INTERRUPTED) from None
    assert last is not None  # noqa: S101 - there is at least one state
    return last


def exit_code(last: Glance) -> int:
    """Return the exit code of its outcome."""
    if last.outcome == "succeeded":
        return SUCCEEDED
    return PARTIAL if last.is_partial else FAILED


def as_document(glance: Glance) -> dict[str, Any]:
    """Return the state as a mapping for JSON output."""
    return {name: value for name, value in asdict(glance).items() if name != "steps"}


def line(glance: Glance) -> str:
    """Format the state as one line."""
    return plain(f"{glance.what} {glance.id} {glance.name}: {_standing(glance)}")


def _standing(glance: Glance) -> str:
    parts = [glance.state]
    if glance.total is not None:
        counts = {"failed": glance.failed, "cancelled": glance.cancelled, "live": glance.live}
        parts.append(f"{glance.succeeded} of {glance.total} done")
        parts += [f"{count} {word}" for word, count in counts.items() if count]
    else:
        parts += [f"attempt {glance.attempt}", *progress(glance.done, glance.done_of)]
    return ", ".join(parts)


def progress(done: float | None, total: float | None) -> list[str]:
    """Format a handler's progress; nothing if it reported none."""
    if done is None:
        return []
    return [f"{done:g} done"] if not total else [f"{done:g} of {total:g} ({done / total:.0%})"]


def bar(done: float, total: float) -> str:
    """Draw a bar for a share."""
    full = round(BAR * min(1.0, max(0.0, done / total))) if total else 0
    return "━" * full + "╌" * (BAR - full)


def view(glance: Glance, height: int) -> Text:
    """Draw the state: a line, a bar, and the steps of a run that fit."""
    title = Text(plain(f"{glance.name}: {_standing(glance)}"), style=state_cell(glance).style)
    lines = [title.append(f"  {glance.what} {glance.id}", style="dim")]
    share = (glance.succeeded, glance.total) if glance.total is not None else (glance.done, glance.done_of)
    if share[0] is not None and share[1]:
        lines.append(Text(f"{bar(share[0], share[1])} {share[0] / share[1]:.0%}", style="cyan"))
    shown = chosen(glance.steps, max(1, height - len(lines) - 2))
    width = max((len(plain(step.name)) for step in shown), default=0)
    lines += [_step_line(step, width) for step in shown]
    if len(shown) < len(glance.steps):
        lines.append(Text(f"… {len(glance.steps) - len(shown)} more steps", style="dim"))
    return Text("\n").join(lines)


def chosen(steps: Sequence[StepGlance], most: int) -> list[StepGlance]:
    """Choose the steps that fit, in the order of the plan; running and failed steps take precedence."""
    if len(steps) <= most:
        return list(steps)
    order = {standing: place for place, standing in enumerate(FIRST_SHOWN)}

    def urgency(step: StepGlance) -> int:
        return -1 if step.outcome == "failed" else order.get(step.standing, len(order))

    kept = {step.id for step in sorted(steps, key=urgency)[:most]}
    return [step for step in steps if step.id in kept]


def _step_line(step: StepGlance, width: int) -> Text:
    cell = state_cell(step)
    parts = [cell.text]
    if step.attempt > 1:
        parts.append(f"attempt {step.attempt}")
    parts += progress(step.done, step.total)
    if step.error is not None and step.outcome != "succeeded":
        parts.append(plain(step.error).partition(r"\n")[0])
    return Text(f"  {cell.sign or ' '} {plain(step.name):<{width}}  {', '.join(parts)}", style=cell.style)


@contextmanager
def _live(console: Console) -> Iterator[Callable[[Glance], None]]:
    with Live(console=console, auto_refresh=False) as shown:

        def show(glance: Glance) -> None:
            drawing = view(glance, console.height)
            for text in (lines := drawing.split("\n", allow_blank=True)):
                text.truncate(console.width, overflow="ellipsis")
            shown.update(Text("\n").join(lines), refresh=True)

        yield show


@contextmanager
def _shower(form: Form) -> Iterator[Callable[[Glance], Any]]:
    match form:
        case "live":
            with _live(Console(highlight=False)) as show:
                yield show
        case "lines":
            yield lambda glance: data(line(glance))
        case "jsonl":
            yield lambda glance: data_line(as_document(glance))
        case "json":
            yield lambda _: None
