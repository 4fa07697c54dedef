"""Where boxes and lines of a drawing stand, judged by their coordinates."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.flow.graph_view import layout, rails
from holdfast.flow.graph_view.layout import Layout, Sizes, place, spread

SIZES = Sizes()
DIAMOND = {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")}


@st.composite
def flows(draw: st.DrawFn, most: int = 40) -> dict[str, tuple[str, ...]]:
    """Steps that wait for some of those before them."""
    count = draw(st.integers(1, most))
    return {
        f"s{n}": tuple(f"s{p}" for p in draw(st.sets(st.integers(0, n - 1), max_size=4))) if n else ()
        for n in range(count)
    }


def overlap(one: tuple[float, float], two: tuple[float, float]) -> bool:
    return abs(one[0] - two[0]) < SIZES.width and abs(one[1] - two[1]) < SIZES.height


def hidden(drawing: Layout) -> list[str]:
    """List lines that run through a box on their way."""
    return [
        f"{line.source} to {line.target} through {name}"
        for line in drawing.lines
        for (x, y), (end, at) in pairwise(line.points)
        if y == at and end - x == SIZES.width
        for name, (left, top) in drawing.boxes.items()
        if left == x and top < y < top + SIZES.height
    ]


@given(flows())
def test_no_two_boxes_overlap_no_line_points_left_and_none_runs_through_a_box(
    waits: dict[str, tuple[str, ...]],
) -> None:
    drawing = place("order", waits)

    names = list(waits)
    assert set(drawing.boxes) == set(names)
    assert not [
        (a, b) for n, a in enumerate(names) for b in names[n + 1 :] if overlap(drawing.boxes[a], drawing.boxes[b])
    ]
    assert {(line.source, line.target) for line in drawing.lines} == {(p, n) for n, ps in waits.items() for p in ps}
    for line in drawing.lines:
        assert all(here[0] < there[0] for here, there in pairwise(line.points)), line
    assert hidden(drawing) == []


@given(flows())
def test_all_stands_inside_the_room_that_is_told(waits: dict[str, tuple[str, ...]]) -> None:
    drawing = place("order", waits)

    for x, y in drawing.boxes.values():
        assert x >= 0 <= y + 1e-6
        assert x + SIZES.width <= drawing.width + 1e-6
        assert y + SIZES.height <= drawing.height + 1e-6


def test_a_diamond_has_three_columns_and_stands_even() -> None:
    boxes = place("order", DIAMOND).boxes

    assert boxes["a"][0] < boxes["b"][0] == boxes["c"][0] < boxes["d"][0]
    assert boxes["a"][1] == pytest.approx(boxes["d"][1])
    assert boxes["a"][1] == pytest.approx((boxes["b"][1] + boxes["c"][1]) / 2)


def test_a_long_line_goes_around_the_boxes_between() -> None:
    (line,) = [
        line
        for line in place("x", {"a": (), "b": ("a",), "c": ("b", "a")}).lines
        if (line.source, line.target) == ("a", "c")
    ]

    assert len(line.points) == 4


def test_lines_that_would_cross_are_untangled() -> None:
    waits = {"a": (), "b": (), "c": ("b",), "d": ("a",)}

    boxes = place("x", waits).boxes

    assert (boxes["a"][1] < boxes["b"][1]) == (boxes["d"][1] < boxes["c"][1])


@given(st.lists(st.tuples(st.floats(-1e4, 1e4), st.floats(0, 100)), min_size=1, max_size=30))
def test_what_is_spread_keeps_its_order_and_its_gaps(given: list[tuple[float, float]]) -> None:
    wanted, gaps = [want for want, _ in given], [gap for _, gap in given][1:]

    found = spread(wanted, gaps)

    assert all(two - one >= gap - 1e-6 for (one, two), gap in zip(pairwise(found), gaps, strict=True))


def test_what_has_room_stays_where_it_wants() -> None:
    assert spread([0, 100, 50, 400], [10, 10, 10]) == [0, 70, 80, 400]


def test_four_hundred_steps_are_laid_out_with_fewer_crossings_than_as_they_came() -> None:
    waits = {f"s{n}": tuple(f"s{p}" for p in {n * 7 % 40, n * 3 % 40} if p < n) if n > 40 else () for n in range(400)}
    ways = layout._ways(waits, layout.graph.levels("x", waits))
    behind, ahead = layout._links(ways)
    as_it_came = layout._layers(waits, ways)

    untangled = layout.untangled(as_it_came, behind, ahead)

    assert layout.crossings(untangled, ahead) < layout.crossings(as_it_came, ahead) / 2


def drawn(waits: dict[str, tuple[str, ...]]) -> list[str]:
    return [f"{row.left}{row.step or ''}{row.right}" for row in rails.draw(waits)]


def test_rails_of_a_diamond() -> None:
    assert drawn(DIAMOND) == ["a", "├→b─╮", "c───┤", "d←──╯"]


def test_rails_of_a_chain_lead_on_between_its_steps() -> None:
    assert drawn({"a": (), "b": ("a",)}) == ["a", "│", "b"]


def test_rails_of_a_fan_are_no_wider_than_two() -> None:
    waits = {"a": (), **{f"{n}": ("a",) for n in range(9)}, "z": tuple(f"{n}" for n in range(9))}

    assert {len(line) for line in drawn(waits)} <= {1, 5}


def test_a_rail_that_is_only_crossed_stays_whole() -> None:
    waits = {"v": (), "r": ("v",), "c": ("v",), "i": ("r",), "s": ("i", "c"), "m": ("c", "s"), "e": ("s", "m", "v")}

    assert drawn(waits) == ["v", "├→r", "│ │", "│ i", "├─│→c", "│ s←┤", "│ ├→m", "e←┴─╯"]


@given(flows(15))
def test_rails_can_be_followed_from_each_step_to_those_that_wait_for_it(waits: dict[str, tuple[str, ...]]) -> None:
    """The edges that a reader finds in the drawing are those of the flow."""
    assert followed(rails.draw(waits)) == {(parent, name) for name, parents in waits.items() for parent in parents}


def followed(rows: list[rails.Row]) -> set[tuple[str, str]]:
    """Read the edges back out of a drawing, as the module says that it is read."""
    above: dict[int, set[str]] = {}  # by column: the steps that the rail there comes from
    seen: dict[int, str] = {}  # the line above
    edges: set[tuple[str, str]] = set()
    for row in rows:
        line = dict(enumerate(row.left + ("●" if row.step else "") + row.right))
        going = {column: found for column, found in above.items() if line.get(column, " ") in "│├┤┼"}
        if row.step is not None:
            here = len(row.left)
            straight = above.get(here, set()) if seen.get(here, " ") in "│├┤┼╮╭" else set()
            comes, goes = reached(line, here)
            edges |= {(parent, row.step) for column in comes for parent in above[column]}
            edges |= {(parent, row.step) for parent in straight}
            for column in goes or [here]:
                going[column] = going.get(column, set()) | {row.step}
        above, seen = going, line
    return edges


def reached(line: dict[int, str], here: int) -> tuple[list[int], list[int]]:
    """Follow a line left and right from a step: the rails that come to it, and those that it goes into."""
    comes: list[int] = []
    goes: list[int] = []
    for way, arrow in ((-1, "→"), (1, "←")):
        beside = line.get(here + way, " ")
        column = here + 2 * way
        while beside != " " and line.get(column - way, " ") in f"─{arrow}":
            if line[column] in "╰╯├┤┼┴╮╭":
                (comes if beside == arrow else goes).append(column)
            column += 2 * way
    return comes, goes
