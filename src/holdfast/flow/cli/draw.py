"""`holdfast flow graph`: a flow or a task as a drawing, in the terminal or as SVG."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.console import Console
from rich.text import Text

from holdfast.cli.common import DB, opened, parse_id
from holdfast.cli.complete import flows_and_tasks
from holdfast.cli.render import AsJson, cut, data, data_json, plain, say
from holdfast.errors import BadInput, NotFound
from holdfast.flow import graph as waiting
from holdfast.flow import reads, run_list
from holdfast.flow.cli.page import progress
from holdfast.flow.graph_view import picture, rails, svg
from holdfast.flow.graph_view.picture import SIGNS, Box, Mood

EXAMPLES = "Examples: holdfast flow graph order; holdfast flow graph TASK --svg task.svg"
MOST_BOXES = 60  # drawn one by one in a terminal
WIDEST_RAILS = 40
SHOWN_OF_LEVEL = 8
STYLES: dict[Mood, str] = {
    "planned": "cyan", "waiting": "dim", "ready": "cyan", "running": "bold cyan", "retrying": "yellow",
    "complete": "green", "skipped": "magenta", "resolved": "magenta", "failed": "bold red", "cancelled": "dim",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drawing:
    """What is drawn, and a line that says how it stands."""

    what: str
    id: str
    title: str
    said: str
    boxes: list[Box]


def graph(
    target: Annotated[
        str,
        typer.Argument(metavar="NAME|TASK", help="A flow's name, or a task's UUID.", autocompletion=flows_and_tasks),
    ],
    *,
    namespace: Annotated[str | None, typer.Option("--namespace", help="The flow's namespace.")] = None,
    version: Annotated[str | None, typer.Option("--version", help="Its version; else the one defined last.")] = None,
    to: Annotated[str | None, typer.Option("--svg", metavar="FILE", help="Write it as SVG; - is stdout.")] = None,
    as_json: AsJson = False,
) -> None:
    """Draw a flow, or a task with the states of its steps; what a step planned itself is one box when it is much."""
    if as_json and to == "-":
        raise BadInput("--json and --svg - both want stdout; name a file for the drawing")
    with opened() as connection:
        drawing = of_task(connection, target) if _is_id(target) else of_flow(connection, target, namespace, version)
    if to is not None:
        _write(to, svg.draw(drawing.title, drawing.said, drawing.boxes))
    if as_json:
        data_json(_document(drawing))
    elif to is None:
        _print(drawing)


def of_flow(connection: DB, name: str, namespace: str | None, version: str | None) -> Drawing:
    """Take a definition to be drawn."""
    found = run_list.definitions(connection, name=name, namespace=namespace, version=version)
    if not found:
        raise NotFound(f"there is no flow {name} of that sort; `holdfast flow list` shows what workers defined")
    if len({each.namespace for each in found}) > 1:
        raise BadInput(
            f"flow {name} is in several namespaces: {', '.join(f.namespace for f in found)}; name one: --namespace"
        )
    definition = max(found, key=lambda each: each.defined_at)
    title = f"{definition.name} {definition.version}"
    said = f"{definition.steps} steps, namespace {definition.namespace}"
    return Drawing("flow", definition.name, title, said, picture.of_plan(run_list.plan(connection, definition)))


def of_task(connection: DB, target: str) -> Drawing:
    """Take a task to be drawn."""
    task_id: UUID = reads.task_of(connection, parse_id(target))
    task, steps = reads.task(connection, task_id), reads.steps(connection, task_id)
    marks = reads.marks(connection, [step.id for step in steps if step.outcome == "succeeded"][: run_list.COUNTED])
    skipped = {number for number, mark in marks.items() if mark.what == "skipped"} | {
        s.id for s in steps if s.name in task.skip
    }
    boxes = picture.of_task(steps, skipped)
    said = f"{task.state}, {progress(task.succeeded, task.total, task.failed)} steps complete, {task.execution_status}"
    return Drawing("task", task.id, f"{task.name} {task.version}, task {task.id}", said, boxes)


def lines(boxes: Sequence[Box]) -> list[tuple[str, Box | None, str, str]]:
    """Lay the boxes out as lines: what is left of a sign, the box, what is right of it, what is said."""
    by_name = {box.name: box for box in boxes}
    rows = rails.draw({box.name: box.after for box in boxes})
    wide = max(len(row.left) + len(row.right) for row in rows) + 1
    names = min(max(len(box.name) for box in boxes), 40)
    found: list[tuple[str, Box | None, str, str]] = []
    for row in rows:
        if row.step is None:
            found.append((row.left, None, "", ""))
            continue
        box = by_name[row.step]
        space = " " * (wide - len(row.left) - len(row.right) - 1)
        found.append(
            (
                row.left,
                box,
                f"{row.right}{space}  ",
                f"{cut(plain(box.name), names):<{names}}  {_box_label(box)}".rstrip(),
            )
        )
    return found


def _print(drawing: Drawing) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(plain(drawing.title), style="bold"))
    console.print(Text(plain(drawing.said)))
    console.print()
    drawn = lines(drawing.boxes) if len(drawing.boxes) <= MOST_BOXES else []
    if not drawn or max(len(left) + len(right) for left, _, right, _ in drawn) > WIDEST_RAILS:
        _print_levels(console, drawing)
        return
    for left, box, right, said in drawn:
        sign = Text() if box is None else Text(SIGNS[box.mood], style=STYLES[box.mood])
        text = Text.assemble((left, "dim"), sign, (right, "dim"), (said, "" if box is None else STYLES[box.mood]))
        _fit(console, text)


def _print_levels(console: Console, drawing: Drawing) -> None:
    """Print a large drawing as a list: a level after the other, what is not complete first."""
    levels = waiting.levels(drawing.title, {box.name: box.after for box in drawing.boxes})
    by_level: dict[int, list[Box]] = defaultdict(list)
    for box in drawing.boxes:
        by_level[levels[box.name]].append(box)
    say(f"{len(drawing.boxes)} boxes: by level; --svg FILE draws them with their edges")
    for level in sorted(by_level):
        boxes = sorted(by_level[level], key=lambda box: list(STYLES).index(box.mood) if box.mood != "failed" else -1)
        counts = ", ".join(
            f"{count} {word or 'steps'}" for word, count in Counter(box.word for box in boxes).most_common()
        )
        console.print(Text(f"level {level}: {counts}", style="bold"))
        for box in boxes[:SHOWN_OF_LEVEL]:
            after = (
                f"  ← {', '.join(map(plain, box.after[:3]))}" + (" …" if len(box.after) > 3 else "")
                if box.after
                else ""
            )
            _fit(
                console,
                Text.assemble(
                    "  ", (f"{SIGNS[box.mood]} {plain(box.name)}  {_box_label(box)}", STYLES[box.mood]), (after, "dim")
                ),
            )
        if len(boxes) > SHOWN_OF_LEVEL:
            console.print(Text(f"  … {len(boxes) - SHOWN_OF_LEVEL} more", style="dim"))


def _fit(console: Console, text: Text) -> None:
    if console.is_terminal:
        text.truncate(console.width, overflow="ellipsis")
    text.rstrip()
    console.print(text)


def _box_label(box: Box) -> str:
    return "  ".join(filter(None, (box.word, plain(box.note))))


def _document(drawing: Drawing) -> dict[str, Any]:
    levels = waiting.levels(drawing.title, {box.name: box.after for box in drawing.boxes})
    boxes = [asdict(box) | {"states": dict(box.states), "level": levels[box.name]} for box in drawing.boxes]
    return {"what": drawing.what, "id": drawing.id, "title": drawing.title, "said": drawing.said, "boxes": boxes}


def _write(to: str, text: str) -> None:
    if to == "-":
        data(text.rstrip())
        return
    try:
        Path(to).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{to} cannot be written: {error.strerror}; name another file, or - for stdout") from None
    say(f"wrote {to}")


def _is_id(target: str) -> bool:
    return re.fullmatch(r"\d+|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}", target) is not None
