"""Tables: on a terminal they fit its width, elsewhere they are tab-separated under a header line, and complete.

On a terminal a column is left out if every row has its default, and a time is shown as an age. If there is no room,
texts are cut first, then the least important columns are left out. `--wide` shows everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from holdfast.cli.render import Styled, data, plain, say, text_of

LONGEST_CELL = 80  # on a terminal, without --wide
GAP = 2
NEVER = object()  # the default of a column that is always shown
SAME = object()  # the default of a column that is useless if all rows have the same value


@dataclass(frozen=True, slots=True)
class Column:
    """A column: when it is left out, and how it shrinks. The first column of a table is always shown in full."""

    name: str
    default: object = None  # left out if every row has this, one of these, or nothing
    rank: int = 5  # of the columns that do not fit, the highest is left out first
    least: int | None = None  # how narrow it may get; None if its values are never cut
    is_extra: bool = False  # only with --wide
    folds: bool = False  # it wraps instead of being cut


@dataclass(frozen=True, slots=True)
class Shown:
    """How rows are shown: `now` is the database's clock, for ages; `wide` is None if a command has no --wide."""

    now: datetime | None = None
    wide: bool | None = None
    styles: Mapping[str, str] | None = None  # of whole texts


def data_table(
    columns: Sequence[str | Column],
    rows: Sequence[Sequence[object]],
    *,
    styles: Mapping[str, str] | None = None,
    now: datetime | None = None,
    wide: bool | None = None,
) -> None:
    """Print rows: as a table on a terminal, tab-separated elsewhere; `styles` maps whole texts to styles."""
    named = [
        Column(column, default=NEVER, least=12, folds=True) if isinstance(column, str) else column for column in columns
    ]
    if not rows:
        return
    console = Console(highlight=False)
    if not console.is_terminal:
        data("\t".join(column.name for column in named))
        for row in rows:
            data("\t".join(plain(text_of(value.text if isinstance(value, Styled) else value)) for value in row))
        return
    _print(console, named, rows, Shown(now, wide, styles))


def age_text(moment: datetime, now: datetime) -> str:
    """Format a time for people: "2 min ago", "in 3 h"."""
    seconds = (now - moment).total_seconds()
    length = length_text(timedelta(seconds=abs(seconds)))
    if length == "0 s":
        return "now"
    return f"{length} ago" if seconds > 0 else f"in {length}"


def length_text(length: timedelta) -> str:
    """Format a duration in its largest unit, as a whole number."""
    seconds = int(length.total_seconds())
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds // unit} {name}"
    return f"{seconds} s"


def told_columns(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> list[int]:
    """Return the indexes of the useful columns: the first, and those whose values are not all the default."""
    return [
        place
        for place, column in enumerate(columns)
        if place == 0 or (not column.is_extra and not _is_default(column, [row[place] for row in rows]))
    ]


def fit(columns: Sequence[Column], widths: Sequence[int], room: int) -> dict[int, int]:
    """Return the widths of the columns that fit, by index: texts shrink first, then columns of the highest rank go."""
    left = dict(enumerate(widths))
    while True:
        over = sum(left.values()) + GAP * (len(left) - 1) - room
        if over <= 0 or len(left) == 1:
            return left
        least = {place: min(width, columns[place].least or width) for place, width in left.items() if place}
        if sum(left[place] - width for place, width in least.items()) >= over:
            return _narrowed(left, least, over)
        del left[max((place for place in left if place), key=lambda place: (columns[place].rank, place))]


def _narrowed(widths: dict[int, int], least: Mapping[int, int], over: int) -> dict[int, int]:
    """Shrink the widest first, so that no text is cut much more than another."""
    narrowed = dict(widths)
    for _ in range(over):
        widest = max((place for place in least if narrowed[place] > least[place]), key=narrowed.__getitem__)
        narrowed[widest] -= 1
    return narrowed


def _is_default(column: Column, values: Sequence[object]) -> bool:
    if column.default is NEVER:
        return False
    texts = [value.text if isinstance(value, Styled) else value for value in values]
    if column.default is SAME:
        return len({str(text) for text in texts}) == 1
    defaults = column.default if isinstance(column.default, tuple) else (column.default,)
    return all(text in (None, "", *defaults) for text in texts)


def _print(console: Console, columns: Sequence[Column], rows: Sequence[Sequence[object]], shown: Shown) -> None:
    places = list(range(len(columns))) if shown.wide else told_columns(columns, rows)
    kept = [columns[place] for place in places]
    cells = [[_cell(row[place], shown) for place in places] for row in rows]
    widths = [max(cell_len(line) for line in _column_texts(kept, cells, at)) for at in range(len(kept))]
    if shown.wide:
        fitted = dict(enumerate(widths))
    else:
        folded = [at for at, column in enumerate(kept) if column.folds]
        whole = [width if at in folded else min(width, LONGEST_CELL) for at, width in enumerate(widths)]
        fitted = fit(kept, whole, console.width)
    _line(console, [Text(kept[at].name, style="bold") for at in fitted], list(fitted.values()))
    for row in cells:
        _row(console, [kept[at] for at in fitted], [row[at] for at in fitted], list(fitted.values()))
    if shown.wide is False and len(fitted) < len(kept):
        more = len(kept) - len(fitted)
        say(f"{more} more column{'s' if more > 1 else ''} with --wide")


def _column_texts(columns: Sequence[Column], cells: Sequence[Sequence[Text]], at: int) -> Iterable[str]:
    yield columns[at].name
    yield from (row[at].plain for row in cells)


def _cell(value: object, shown: Shown) -> Text:
    if isinstance(value, Styled):
        return Text(f"{value.sign} {plain(value.text)}".lstrip(), style=value.style)
    if isinstance(value, datetime) and shown.now is not None and not shown.wide:
        return Text(age_text(value, shown.now))
    text = plain(text_of(value))
    return Text(text, style=(shown.styles or {}).get(text, ""))


def _row(console: Console, columns: Sequence[Column], cells: Sequence[Text], widths: Sequence[int]) -> None:
    """Print a row; a cell that wraps takes as many lines as it needs."""
    folded = [
        list(cell.wrap(console, width)) if column.folds and cell_len(cell.plain) > width else [cell]
        for column, cell, width in zip(columns, cells, widths, strict=True)
    ]
    for lines in zip_longest(*folded, fillvalue=Text()):
        _line(console, lines, widths)


def _line(console: Console, cells: Sequence[Text], widths: Sequence[int]) -> None:
    line = Text()
    for cell, width in zip(cells, widths, strict=True):
        part = cell.copy()
        part.truncate(width, overflow="ellipsis", pad=True)
        line.append_text(part).append(" " * GAP)
    line.rstrip()
    console.print(line, soft_wrap=True)
