"""Tables on a terminal fit its width, and tell as much as there is room for."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from cli.flows import failed_task
from cli.rows import dead_task, done_task
from holdfast.cli.table import GAP, NEVER, SAME, Column, age_text, fit, told_columns
from kernel.steps import claim, start

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
NARROW = 60
LISTS = (
    ("runs", "list"), ("flow", "list"), ("flow", "runs"), ("dlq", "list"), ("dlq", "report"), ("queues", "list"),
    ("workers",),
)  # fmt: skip


@pytest.fixture
def rows(db):
    """Rows for every list, with long names."""
    failed_task(db, about={"initiator": "somebody with a long name", "reason": "a long reason " * 5})
    dead_task(db, "a_kind_with_quite_a_long_name_for_a_terminal")
    done_task(db)
    start(db, queue="a queue with a name that takes its room", priority=3)
    claim(db, "a-worker-on-some-host.example:1234/0a1b2c3d", queue="mail")


def screen_lines(screen):
    return [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line).rstrip() for line in screen.splitlines()]


def test_every_list_fits_a_narrow_terminal_with_its_header(terminal, rows):
    """The first column stays whole, so that an id can be copied."""
    for command in LISTS:
        code, screen = terminal(*command, "--quiet", columns=NARROW)
        lines = screen_lines(screen)

        assert code == 0
        assert len(lines) > 1, command
        assert max(map(cell_len, lines)) <= NARROW, (command, lines)
        assert re.fullmatch(r"[a-z ]+", lines[0]), command
        assert not lines[1].split("  ")[0].endswith("…"), command


def test_wide_shows_every_column_with_whole_texts_and_exact_times(terminal, cli, rows):
    _, narrow = terminal("runs", "list", columns=NARROW)
    _, wide = terminal("runs", "list", "--wide", columns=NARROW)
    piped = cli("runs", "list").stdout.splitlines()

    assert "more columns with --wide" in narrow
    header = screen_lines(wide)[0]
    assert header.split() == piped[0].split("\t")
    assert {"tenant", "queue", "what"} <= set(header.split())
    assert not {"tenant", "what"} & set(screen_lines(narrow)[0].split())
    assert "ago" not in wide
    assert re.search(r"\d{4}-\d\d-\d\dT", wide)
    assert "a_kind_with_quite_a_long_name_for_a_terminal" in wide


def test_elsewhere_there_is_a_header_every_column_and_exact_times(cli, rows):
    """A program may cut the columns: they do not depend on the rows."""
    for command in LISTS:
        header, *lines = cli(*command).stdout.splitlines()

        assert all(line.count("\t") == header.count("\t") for line in lines), command
        assert lines
        assert "ago" not in "".join(lines)


def test_a_worker_that_was_killed_is_not_called_alive(terminal, db, clock):
    """Nobody knows yet that it is dead: when it was last seen is what there is to say; then it is late, then gone."""
    claim(db, "w")
    seen = []
    for ahead in (25, 60, 300):
        clock.set(NOW)
        db.execute("update holdfast.workers set seen_at = %s", [NOW - timedelta(seconds=ahead)])
        clock.freeze()
        seen.append(screen_lines(terminal("workers", "--all", "--no-color")[1])[1])

    assert not any("alive" in line for line in seen)
    assert ["25 s ago" in seen[0], "late" in seen[1] and "1 min ago" in seen[1], "gone" in seen[2]] == [True] * 3


@pytest.mark.parametrize(
    ("ahead", "text"),
    [(0, "now"), (25.7, "25 s ago"), (150, "2 min ago"), (7199, "1 h ago"), (90_000, "1 d ago"), (-600, "in 10 min")],
)
def test_ages_are_in_one_unit(ahead, text):
    assert age_text(NOW - timedelta(seconds=ahead), NOW) == text


def test_a_column_is_left_out_where_every_row_has_its_default():
    columns = [
        Column("id"),
        Column("queue", "default"),
        Column("tries", (0, 1)),
        Column("what", SAME),
        Column("n", NEVER),
    ]

    assert told_columns(columns, [(1, "default", 0, "task", None), (2, None, 1, "task", None)]) == [0, 4]
    assert told_columns(columns, [(1, "mail", 0, "task", None), (2, "default", 2, "run", None)]) == [0, 1, 2, 3, 4]


COLUMNS = st.builds(Column, st.just("c"), rank=st.integers(0, 9), least=st.none() | st.integers(1, 20))


@given(st.lists(st.tuples(COLUMNS, st.integers(1, 80)), min_size=1, max_size=12), st.integers(40, 200))
def test_what_fits_takes_no_more_than_the_room_and_cuts_no_more_than_it_may(sized, room):
    columns, widths = zip(*sized, strict=True)

    fitted = fit(columns, widths, room)

    assert 0 in fitted
    assert fitted[0] == widths[0]
    assert sum(fitted.values()) + GAP * (len(fitted) - 1) <= room or len(fitted) == 1
    for place, width in fitted.items():
        assert min(widths[place], columns[place].least or widths[place]) <= width <= widths[place]
    left_out = [columns[place].rank for place in range(len(columns)) if place not in fitted]
    assert all(columns[place].rank <= rank for place in fitted if place for rank in left_out)
