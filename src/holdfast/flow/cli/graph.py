"""`holdfast flow graph`: a flow or a run as a drawing, in the terminal or as SVG."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from holdfast.cli.connection import opened
from holdfast.cli.render import AsJson, cut, data, data_json, plain, say
from holdfast.errors import BadInput
from holdfast.flow.cli.completion import flows_and_runs
from holdfast.flow.cli.page import STYLES
from holdfast.flow.graph_view import drawing, rails, svg
from holdfast.flow.graph_view.drawing import Drawing
from holdfast.flow.graph_view.picture import SIGNS, Box
from holdfast.reads.run_detail import parse_id

EXAMPLES = "Examples: holdfast flow graph order; holdfast flow graph RUN --svg run.svg"
MOST_BOXES = 60  # drawn one by one in a terminal
WIDEST_RAILS = 40
SHOWN_OF_LEVEL = 8


def graph(
    target: Annotated[
        str,
        typer.Argument(metavar="NAME|RUN", help="A flow's name, or a run's UUID.", autocompletion=flows_and_runs),
    ],
    *,
    namespace: Annotated[str | None, typer.Option("--namespace", help="The flow's namespace.")] = None,
    version: Annotated[
        str | None, typer.Option("--version", help="Its version; by default the one defined last.")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--svg", metavar="FILE", help="Write it as SVG to this file; - is stdout.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw a flow, or a run with the states of its steps; large fan-outs are drawn as one box."""
    if as_json and to == "-":
        raise BadInput("--json and --svg - both write to stdout", where="--svg", next="name a file for the drawing")
    with opened() as connection:
        if _is_id(target):
            picture = drawing.of_task(connection, parse_id(target))
        else:
            picture = drawing.of_flow(connection, target, namespace, version)
    if to is not None:
        _write(to, svg.draw(picture.title, picture.summary, picture.boxes))
    if as_json:
        data_json(picture.as_document())
    elif to is None:
        _print(picture)


def lines(boxes: Sequence[Box]) -> list[tuple[str, Box | None, str, str]]:
    """Lay out the boxes as lines: the text left of a sign, the box, the text right of it, and its label."""
    by_name = {box.name: box for box in boxes}
    rows = rails.draw({box.name: box.after for box in boxes})
    wide = max(len(row.left) + len(row.right) for row in rows) + 1
    names = min(max(len(box.name) for box in boxes), 40)
    lines: list[tuple[str, Box | None, str, str]] = []
    for row in rows:
        if row.step is None:
            lines.append((row.left, None, "", ""))
            continue
        box = by_name[row.step]
        space = " " * (wide - len(row.left) - len(row.right) - 1)
        lines.append(
            (
                row.left,
                box,
                f"{row.right}{space}  ",
                f"{cut(plain(box.name), names):<{names}}  {_box_label(box)}".rstrip(),
            )
        )
    return lines


def _print(drawing: Drawing) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(plain(drawing.title), style="bold"))
    console.print(Text(plain(drawing.summary)))
    console.print()
    drawn = lines(drawing.boxes) if len(drawing.boxes) <= MOST_BOXES else []
    if not drawn or max(len(left) + len(right) for left, _, right, _ in drawn) > WIDEST_RAILS:
        _print_levels(console, drawing)
        return
    for left, box, right, note in drawn:
        sign = Text() if box is None else Text(SIGNS[box.mood], style=STYLES[box.mood])
        text = Text.assemble((left, "dim"), sign, (right, "dim"), (note, "" if box is None else STYLES[box.mood]))
        _fit(console, text)


def _print_levels(console: Console, drawing: Drawing) -> None:
    """Print a large drawing as a list, level by level, with incomplete steps first."""
    levels = drawing.levels()
    by_level: dict[int, list[Box]] = defaultdict(list)
    for box in drawing.boxes:
        by_level[levels[box.name]].append(box)
    say(f"{len(drawing.boxes)} boxes, listed by level; --svg FILE draws them with their edges")
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


def _write(to: str, text: str) -> None:
    if to == "-":
        data(text.rstrip())
        return
    try:
        Path(to).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(
            f"{to} cannot be written: {error.strerror}", where="--svg", next="name another file, or - for stdout"
        ) from None
    say(f"wrote {to}")


def _is_id(target: str) -> bool:
    return re.fullmatch(r"\d+|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}", target) is not None
