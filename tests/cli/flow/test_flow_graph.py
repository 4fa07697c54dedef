"""`holdfast flow graph`: a flow or a task as a drawing."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from cli.flows import define, failed_task, mapped_task
from kernel.steps import node

SVG = "{http://www.w3.org/2000/svg}"


def drawn(done):
    """The lines below title and summary."""
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n\n", 1)[1].splitlines()


def test_a_definition_is_drawn_with_its_edges(cli, found, db):
    """T-23, T-145"""
    define(db)

    lines = drawn(cli("flow", "graph", "order"))
    boxes = found("flow", "graph", "order")["boxes"]

    assert lines == ["●      reserve", "├→●─╮  charge", "●───┤  greet    skippable", "●←──╯  ship"]
    assert [(box["name"], box["after"], box["level"]) for box in boxes][-1] == ("ship", ["charge", "greet"], 2)


def test_a_task_is_drawn_with_the_state_of_each_step_as_sign_and_word(cli, found, db):
    task_id = failed_task(db)

    lines = drawn(cli("flow", "graph", task_id))

    assert [line.split() for line in lines] == [
        ["✓", "reserve", "complete"],
        ["├→✗─╮", "charge", "error"],
        ["✓───┤", "greet", "complete"],
        ["○←──╯", "ship", "pending"],
    ]
    assert [box["mood"] for box in found("flow", "graph", task_id)["boxes"]] == [
        "complete",
        "failed",
        "complete",
        "waiting",
    ]


def test_colour_is_only_added_on_a_terminal(terminal, db):
    """The words and signs are the same without."""
    task_id = failed_task(db)

    _, screen = terminal("flow", "graph", task_id, columns=80)
    _, bare = terminal("flow", "graph", task_id, "--no-color", columns=80)

    assert "\x1b[1;31m✗\x1b[0m" in screen
    assert "✗" in bare
    assert "31m" not in bare


def test_a_map_of_many_items_is_one_box(cli, db):
    task_id = mapped_task(db, 9, failing={4})

    lines = drawn(cli("flow", "graph", task_id))

    assert [line.split(maxsplit=2) for line in lines if "ship" in line] == [
        ["✗", "ship", "error  9 items: 8 complete, 1 error"]
    ]


def test_more_than_sixty_boxes_are_listed_by_level(cli, db):
    define(db, "wide", [node("a"), *(node(f"b{n}", "a") for n in range(70))])

    done = cli("flow", "graph", "wide")

    assert "level 1: 70 steps" in done.stdout
    assert "  … 62 more" in done.stdout
    assert "--svg FILE" in done.stderr


def test_svg_is_written_to_a_file_or_to_stdout(cli, db, tmp_path):
    task_id = failed_task(db)
    file = tmp_path / "task.svg"

    to_file, to_stdout = cli("flow", "graph", task_id, "--svg", str(file)), cli("flow", "graph", task_id, "--svg", "-")

    assert (to_file.stdout, to_file.stderr) == ("", f"wrote {file}\n")
    assert to_stdout.stdout == file.read_text()
    names = [text.text for text in ET.fromstring(file.read_text()).iter(f"{SVG}text") if text.get("class") == "name"]
    assert names == ["reserve", "charge", "greet", "ship"]


def test_what_cannot_be_drawn_says_why(cli, db):
    define(db)
    define(db, namespace="shop")

    gone, twice = cli("flow", "graph", "nobody"), cli("flow", "graph", "order")
    nowhere = cli("flow", "graph", "order", "--namespace", "shop", "--svg", "/nowhere/x.svg")
    both = cli("flow", "graph", "order", "--json", "--svg", "-")

    assert [done.returncode for done in (gone, twice, nowhere, both)] == [4, 2, 2, 2]
    assert "holdfast flow list" in gone.stderr
    assert "default, shop" in twice.stderr
    assert "cannot be written" in nowhere.stderr
