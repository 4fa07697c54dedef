"""A drawing of a flow as text: one line per step, from top to bottom, with the edges as rails on the left. Pure.

A rail represents steps that the same other steps wait for. `├→●` comes out of a rail, `●─┤` goes into one; a step at a
rail's end comes straight from above. A rail that is only crossed stays whole: `─│─`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.flow.graph import Waits


@dataclass(frozen=True, slots=True)
class Row:
    """A line: the text left and right of a step's sign; a line without a step only continues the rails."""

    step: str | None
    left: str
    right: str = ""


def draw(waits: Waits) -> list[Row]:
    """Draw the steps and their edges."""
    awaited = children(waits)
    rails = _Rails(awaited)
    rows: list[Row] = []
    for step in order(waits):
        rows += rails.add(step)
    return rows


def order(waits: Waits) -> list[str]:
    """Sort each step after those it waits for, and keep chains together where possible."""
    awaited, left = children(waits), {name: len(set(parents)) for name, parents in waits.items()}
    ready = [name for name, count in left.items() if count == 0][::-1]
    names: list[str] = []
    while ready:
        names.append(ready.pop())
        for child in awaited[names[-1]]:
            left[child] -= 1
        ready += [child for child in reversed(awaited[names[-1]]) if left[child] == 0]
    return names


def children(waits: Waits) -> dict[str, list[str]]:
    """Reverse the edges."""
    children: dict[str, list[str]] = {name: [] for name in waits}
    for name, parents in waits.items():
        for parent in dict.fromkeys(parents):
            children[parent].append(name)
    return children


class _Rails:
    """The rails below the last line: each with the steps that it still leads to, or free."""

    def __init__(self, awaited: Mapping[str, Sequence[str]]) -> None:
        self._awaited = {name: frozenset(found) for name, found in awaited.items()}
        self._alike: dict[frozenset[str], int] = defaultdict(int)  # coming steps that these steps wait for
        for found in self._awaited.values():
            self._alike[found] += 1
        self._rails: list[frozenset[str]] = []
        self._signs: set[int] = set()  # columns of the previous line that hold a step

    def add(self, step: str) -> list[Row]:
        rails, to = self._rails, self._awaited[step]
        self._alike[to] -= 1
        joined = [column for column, rail in enumerate(rails) if step in rail]
        for column in joined:
            rails[column] -= {step}
        ended = [column for column in joined if not rails[column]]
        column = min([self._free(), *ended])
        passing = {number for number, rail in enumerate(rails) if rail}
        lead = [Row(None, self._leading(passing | set(ended)))] if column in ended and column in self._signs else []
        self._hold(column)
        goes_to, is_new = self._way_on(column, to, [c for c in joined if c != column])
        cells = _Cells(len(rails), passing)
        for each in sorted(
            joined, key=lambda rail: abs(rail - column)
        ):  # a line from further away passes over a nearer joint
            cells.come(each, column, is_end=each in ended)
        if goes_to is not None:
            cells.go(column, goes_to, is_new=is_new)
        self._signs = {column}
        return [*lead, cells.row(step, column)]

    def _way_on(self, column: int, to: frozenset[str], joined: Sequence[int]) -> tuple[int | None, bool]:
        """Find the rail that the step goes into: its own, unless equal steps have one or will have one."""
        rails = self._rails
        if not to:
            return None, False
        for number, rail in enumerate(rails):
            if rail == to and number != column and not any((c < column) == (number < column) for c in joined):
                return number, False
        if self._alike[to] and not any(c > column for c in joined):
            number = next((n for n in range(column + 1, len(rails)) if not rails[n]), len(rails))
            self._hold(number)
            rails[number] = to
            return number, True
        rails[column] = to
        return None, False

    def _free(self) -> int:
        return next((column for column, rail in enumerate(self._rails) if not rail), len(self._rails))

    def _hold(self, column: int) -> None:
        self._rails += [frozenset()] * (column + 1 - len(self._rails))

    def _leading(self, passing: set[int]) -> str:
        return "".join("│ " if column in passing else "  " for column in range(len(self._rails))).rstrip()


class _Cells:
    """One line as it is drawn: one character per column, and one between two columns."""

    def __init__(self, columns: int, passing: set[int]) -> None:
        self._cells = ["│" if number % 2 == 0 and number // 2 in passing else " " for number in range(2 * columns)]

    def come(self, rail: int, column: int, *, is_end: bool) -> None:
        """Lead a rail to the step; a rail that ends above it needs nothing."""
        if rail == column:
            return
        is_left = rail < column
        corner = ("╰" if is_left else "╯") if is_end else ("├" if is_left else "┤")
        self._stroke(rail, column)
        self._cells[2 * rail] = corner
        self._cells[2 * column - 1 if is_left else 2 * column + 1] = "→" if is_left else "←"

    def go(self, column: int, rail: int, *, is_new: bool) -> None:
        """Lead the step into a rail."""
        self._stroke(rail, column)
        self._cells[2 * rail] = ("╭" if rail < column else "╮") if is_new else ("├" if rail < column else "┤")

    def row(self, step: str, column: int) -> Row:
        """Return the line."""
        return Row(step, "".join(self._cells[: 2 * column]), "".join(self._cells[2 * column + 1 :]).rstrip())

    def _stroke(self, rail: int, column: int) -> None:
        low, high = sorted((2 * rail, 2 * column))
        for number in range(low + 1, high):
            here = self._cells[number]
            self._cells[number] = {" ": "─", "╰": "┴", "╯": "┴", "├": "┼", "┤": "┼"}.get(here, here)
