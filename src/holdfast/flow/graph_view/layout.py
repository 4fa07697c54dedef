"""Places the boxes of a drawing: layers from left to right, few crossings, long lines between boxes. Pure."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from holdfast.flow import graph
from holdfast.flow.graph import Waits

SWEEPS = 12  # over all layers, for fewer crossings
ROUNDS = 8  # over all layers, for straighter lines

Point = tuple[float, float]


class Pass(NamedTuple):
    """The point where all lines of a box pass a layer together."""

    source: str
    layer: int


Cell = str | Pass
Layers = list[list[Cell]]
Links = Mapping[Cell, Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a drawing."""

    width: float = 190
    height: float = 46
    across: float = 70  # between two layers
    between: float = 16  # two boxes of a layer
    lane: float = 4  # the height of a passing line


@dataclass(frozen=True, slots=True)
class Line:
    """An edge, from the right side of a box to the left side of another."""

    source: str
    target: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The boxes by their upper left corners, the lines, and the total size."""

    boxes: dict[str, Point]
    lines: list[Line]
    width: float
    height: float


def place(flow: str, waits: Waits, sizes: Sizes | None = None) -> Layout:
    """Place each step to the right of all that it waits for."""
    sizes = sizes or Sizes()
    ways = _ways(waits, graph.levels(flow, waits))
    behind, ahead = _links(ways)
    layers = untangled(_layers(waits, ways), behind, ahead)
    heights = _straightened(layers, behind, ahead, sizes)
    top = min(heights[cell] - _height(cell, sizes) / 2 for layer in layers for cell in layer)
    column = {cell: number * (sizes.width + sizes.across) for number, layer in enumerate(layers) for cell in layer}
    middles = {cell: (column[cell], heights[cell] - top) for cell in heights}
    return Layout(
        boxes={name: (x, y - sizes.height / 2) for name, (x, y) in middles.items() if isinstance(name, str)},
        lines=[Line(*ends, _points(way, middles, sizes.width)) for ends, way in ways.items() if ends[0] != ends[1]],
        width=len(layers) * (sizes.width + sizes.across) - sizes.across,
        height=max(y + _height(cell, sizes) / 2 for cell, (_, y) in middles.items()),
    )


def untangled(layers: Layers, behind: Links, ahead: Links) -> Layers:
    """Order each layer by the middle of its neighbours, back and forth, and keep the order with fewest crossings."""
    best, fewest = layers, crossings(layers, ahead)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        forth = sweep % 2 == 0
        layers = _swept(layers, behind) if forth else _swept(layers[::-1], ahead)[::-1]
        if (count := crossings(layers, ahead)) < fewest:
            best, fewest = layers, count
    return best


def crossings(layers: Layers, ahead: Links) -> int:
    """Count the pairs of lines that cross."""
    count = 0
    for here, there in pairwise(layers):
        place_of = {cell: number for number, cell in enumerate(there)}
        seen: list[int] = []
        for cell in here:
            ends = sorted(place_of[end] for end in ahead[cell])
            count += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return count


def spread(wanted: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """Return positions as near as possible to the wanted ones, in order, each at least its gap after the previous.

    Without the gaps this is a rising sequence; the nearest one is found by merging neighbours that would fall.
    """
    offsets = [sum(gaps[:number]) for number in range(len(wanted))]
    blocks: list[tuple[float, int]] = []  # the mean of some neighbours, and their number
    for want, offset in zip(wanted, offsets, strict=True):
        mean, size = want - offset, 1
        while blocks and blocks[-1][0] >= mean:
            other, many = blocks.pop()
            mean, size = (mean * size + other * many) / (size + many), size + many
        blocks.append((mean, size))
    level = [mean for mean, size in blocks for _ in range(size)]
    return [each + offset for each, offset in zip(level, offsets, strict=True)]


def _ways(waits: Waits, levels: Mapping[str, int]) -> dict[tuple[str, str], list[Cell]]:
    """List the cells that each edge passes; a step without edges is a path from itself to itself."""
    ways: dict[tuple[str, str], list[Cell]] = {(name, name): [name] for name in waits}
    for name, parents in waits.items():
        for parent in dict.fromkeys(parents):
            between = range(levels[parent] + 1, levels[name])
            ways[parent, name] = [parent, *(Pass(parent, layer) for layer in between), name]
    return ways


def _layers(waits: Waits, ways: Mapping[tuple[str, str], list[Cell]]) -> Layers:
    levels = graph.levels("", waits)
    layers: dict[int, dict[Cell, None]] = defaultdict(dict)
    for way in ways.values():
        for cell in way:
            layers[levels[cell] if isinstance(cell, str) else cell.layer][cell] = None
    return [list(layers[number]) for number in range(len(layers))]


def _links(ways: Mapping[tuple[str, str], list[Cell]]) -> tuple[Links, Links]:
    behind: dict[Cell, dict[Cell, None]] = defaultdict(dict)
    ahead: dict[Cell, dict[Cell, None]] = defaultdict(dict)
    for way in ways.values():
        for here, there in pairwise(way):
            behind[there][here] = None
            ahead[here][there] = None
    cells = {cell for way in ways.values() for cell in way}
    return {c: list(behind[c]) for c in cells}, {c: list(ahead[c]) for c in cells}


def _swept(layers: Layers, neighbours: Links) -> Layers:
    done = [layers[0]]
    for layer in layers[1:]:
        place_of = {cell: number for number, cell in enumerate(done[-1])}
        middle = {
            cell: _mean([place_of[each] for each in neighbours[cell]], number) for number, cell in enumerate(layer)
        }
        done.append(sorted(layer, key=middle.__getitem__))
    return done


def _straightened(layers: Layers, behind: Links, ahead: Links, sizes: Sizes) -> dict[Cell, float]:
    gaps = [[0.0, *(_gap(one, two, sizes) for one, two in pairwise(layer))] for layer in layers]
    stacked = [[sum(gap[: number + 1]) for number in range(len(gap))] for gap in gaps]
    heights = {
        cell: y - column[-1] / 2
        for layer, column in zip(layers, stacked, strict=True)
        for cell, y in zip(layer, column, strict=True)
    }
    for turn in range(2 * ROUNDS):
        neighbours, step = (behind, 1) if turn % 2 == 0 else (ahead, -1)
        for layer, gap in list(zip(layers, gaps, strict=True))[::step]:
            wanted = [_mean([heights[each] for each in neighbours[cell]], heights[cell]) for cell in layer]
            heights.update(zip(layer, spread(wanted, gap[1:]), strict=True))
    return heights


def _gap(one: Cell, two: Cell, sizes: Sizes) -> float:
    return (_height(one, sizes) + _height(two, sizes)) / 2 + sizes.between


def _height(cell: Cell, sizes: Sizes) -> float:
    return sizes.height if isinstance(cell, str) else sizes.lane


def _points(way: Sequence[Cell], middles: Mapping[Cell, Point], width: float) -> tuple[Point, ...]:
    (x, y), (end_x, end_y) = middles[way[0]], middles[way[-1]]
    through = [point for cell in way[1:-1] for point in (middles[cell], (middles[cell][0] + width, middles[cell][1]))]
    return ((x + width, y), *through, (end_x, end_y))


def _mean(numbers: Sequence[float], default: float) -> float:
    return sum(numbers) / len(numbers) if numbers else default
