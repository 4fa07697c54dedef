"""What a drawing shows, and how it is written as SVG."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from holdfast.flow.graph_view import picture, svg
from holdfast.flow.graph_view.picture import SIGNS, Box, of_task
from holdfast.flow.reads import TaskStep

SVG = "{http://www.w3.org/2000/svg}"
ORDER = [("list", ()), ("ship", ("list", "ship[0]", "ship[1]")), ("close", ("ship",)), ("ship[0]", ()), ("ship[1]", ())]


def steps(*shape: tuple[str, tuple[str, ...]], **odd: dict[str, Any]) -> list[TaskStep]:
    """Steps of a task by name and parents, complete but for what is said of a few."""
    ids = {name: number for number, (name, _) in enumerate(shape)}
    usual: dict[str, Any] = {
        "kind": "k", "state": "complete", "phase": "over", "outcome": "succeeded", "standing": "over",
        "queue": "default", "attempt": 1, "failures": 0, "tries": 3, "due_at": None, "worker": None,
        "claimed_at": None, "finished_at": None,
        "error_type": None, "message": None,
    }  # fmt: skip
    return [
        TaskStep(id=ids[name], name=name, parents=[ids[p] for p in parents if p in ids], **usual | odd.get(name, {}))
        for name, parents in shape
    ]


def shape(boxes: list[Box]) -> dict[str, tuple[str, ...]]:
    return {box.name: box.after for box in boxes}


def many(count: int) -> list[tuple[str, tuple[str, ...]]]:
    items = [f"ship[{n}]" for n in range(count)]
    return [("list", ()), ("ship", ("list", *items)), ("close", ("ship",)), *((item, ()) for item in items)]


def test_a_few_items_stand_between_what_the_map_waits_for_and_the_map() -> None:
    assert shape(of_task(steps(*ORDER))) == {
        "list": (), "ship": ("ship[0]", "ship[1]"), "close": ("ship",), "ship[0]": ("list",), "ship[1]": ("list",),
    }  # fmt: skip


def test_many_items_are_counted_in_the_box_of_their_map() -> None:
    failed = {"state": "error", "outcome": "failed"}
    waiting = {"state": "pending", "outcome": None, "standing": "waiting"}

    boxes = of_task(steps(*many(10_000), **{"ship[7]": failed, "ship[9]": failed, "ship": waiting}))

    ship = boxes[1]
    assert shape(boxes) == {"list": (), "ship": ("list",), "close": ("ship",)}
    assert (ship.mood, ship.note) == ("failed", "10 000 items: 9 998 complete, 2 error")
    assert dict(ship.states) == {"complete": 9998, "error": 2}


def test_a_sub_flow_in_a_map_is_threaded_through_its_item() -> None:
    boxes = of_task(
        steps(
            ("list", ()), ("ship", ("list", "ship[0]")), ("ship[0]", ("ship[0].go",)), ("ship[0].pack", ()),
            ("ship[0].go", ("ship[0].pack",)),
        )
    )  # fmt: skip

    assert shape(boxes) == {
        "list": (), "ship": ("ship[0]",), "ship[0]": ("ship[0].go",), "ship[0].pack": ("list",),
        "ship[0].go": ("ship[0].pack",),
    }  # fmt: skip


def test_a_parent_whose_row_is_gone_is_left_out() -> None:
    """T-129"""
    (only,) = [step for step in steps(("a", ()), ("b", ("a",))) if step.name == "b"]

    assert shape(of_task([only])) == {"b": ()}


def test_a_name_with_a_dot_that_nobody_planned_is_a_name() -> None:
    assert picture.owners_of(["a.b", "c[1]", "c"]) == {"c[1]": "c"}


@pytest.mark.parametrize(
    ("step", "mood"),
    [
        ({}, "complete"),
        ({"state": "resolved_manually"}, "resolved"),
        ({"state": "error", "outcome": "failed"}, "failed"),
        ({"state": "error", "outcome": None, "standing": "later", "failures": 1}, "retrying"),
        ({"state": "in_progress", "outcome": None, "standing": "held", "failures": 1}, "running"),
        ({"state": "pending", "outcome": None, "standing": "waiting"}, "waiting"),
        ({"state": "pending", "outcome": None, "standing": "due"}, "ready"),
        ({"state": "cancelled", "outcome": "cancelled"}, "cancelled"),
    ],
)
def test_each_way_to_stand_has_a_mood_a_sign_and_a_word(step: dict[str, Any], mood: str) -> None:
    (box,) = of_task(steps(("a", ()), a=step))

    assert (box.mood, bool(box.word)) == (mood, True)
    assert len(set(SIGNS.values())) == len(SIGNS)


BOXES = [
    Box("a", (), "complete", "complete"),
    Box("<b> & \x1b\x00", ("a",), "failed", "error", 'it said "</svg>"'),
    Box("c" * 60, ("a",), "waiting", "pending"),
]


def test_the_svg_is_well_formed_whatever_the_names_are_and_fetches_nothing() -> None:
    text = svg.draw("<order>", "error, 1/3", BOXES)

    root = ET.fromstring(text)
    names = [found.text for found in root.iter(f"{SVG}text") if found.get("class") == "name"]
    assert names[0] == "a"
    assert (names[1] or "").startswith("<b> & ")
    assert (names[2] or "").endswith("…")
    assert {element.tag for element in root.iter()} == {
        f"{SVG}{name}" for name in ("svg", "title", "desc", "style", "rect", "text", "g", "path")
    }
    assert not re.search(r"url\(|@import|href|https?://(?!www\.w3\.org/2000/svg)", text)


def test_the_svg_tells_itself_in_words_and_has_two_themes() -> None:
    """For screen readers: title, description, and each box with its full name."""
    root = ET.fromstring(svg.draw("order", "error, 1/3", BOXES))

    assert (root.get("role"), root.get("aria-labelledby")) == ("img", "t d")
    assert root.findtext(f"{SVG}title") == "order"
    described = root.findtext(f"{SVG}desc") or ""
    assert "3 boxes. 1 complete, 1 error, 1 pending." in described
    assert f"{'c' * 60}: pending after a." in described
    assert "prefers-color-scheme:dark" in (root.findtext(f"{SVG}style") or "")


@pytest.mark.parametrize("count", [3, 60, 400])
def test_each_box_of_a_drawing_of_any_size_is_inside_it(count: int) -> None:
    """U12"""
    boxes = [
        Box(f"s{n}", tuple(f"s{p}" for p in {n // 2, n - 1 - n % 7} if 0 <= p < n), "complete", "complete")
        for n in range(count)
    ]

    root = ET.fromstring(svg.draw("order", "", boxes))

    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    places = [re.findall(r"[\d.]+", g.get("transform", "")) for g in root.iter(f"{SVG}g") if g.get("class")]
    assert len(places) == count
    assert all(float(x) + svg.SIZES.width < width and float(y) + svg.SIZES.height < height for x, y in places)
