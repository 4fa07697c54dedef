"""A bulk start of tasks that differ only in their input is written by hand: every text must come out as it went in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Holdfast
from holdfast.errors import BadInput, InputRefused
from holdfast.kernel.copy_text import AlikeStarts, Start, pieces
from kernel.steps import DB


@dataclass
class Item:
    """The input of a step that shares a call."""

    number: int


ODD = ["\\", "\\N", "\\.", "a\tb", "a\nb", "a\r\nb", '"', "ä€😀", "", "\\\\n", "'", "{}", "\x7f", "\u2028"]
READ = "select input ->> 'text' from holdfast.steps order by id"
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)


def test_every_text_arrives_as_it_was_sent(hf: Holdfast, db: DB) -> None:
    """Backslashes, tabs and ends of lines mean something to COPY."""

    @hf.task
    def keep(text: str) -> None: ...

    assert keep.start_many({"text": text} for text in ODD) == len(ODD)

    assert [text for (text,) in db.execute(READ)] == ODD


def test_what_is_shared_arrives_with_each_of_them(hf: Holdfast, db: DB) -> None:
    """Names with odd characters, and every option that all of them have."""
    due_at = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)

    @hf.task(name="a\\b c", batch=10)
    def keep(items: list[Item]) -> list[None]:
        return [None for _ in items]

    keep.options(queue='q"\\', priority=3, due_at=due_at, limits=["x", 'y"\\z'], weight=0.5).start_many(
        Item(number) for number in range(40)
    )

    rows = db.execute(
        "select distinct kind, queue, priority, due_at, limits, weight, batch_key, count(*) over () from holdfast.steps"
    )
    expected: tuple[Any, ...] = ("a\\b c", 'q"\\', 3, due_at, ["x", 'y"\\z'], 0.5, "", 40)
    assert rows.fetchall() == [expected]


@given(st.lists(TEXTS, max_size=70), TEXTS)
@settings(max_examples=100, deadline=None)
def test_lines_are_the_same_as_those_of_single_rows(texts: list[str], queue: str) -> None:
    """What is written once and what is written per row read alike."""
    alike = AlikeStarts(Start("kind", "", queue, limits=["a"], weight=1.5), texts)

    assert "".join(pieces(alike)) == "".join(pieces(list(alike)))


@pytest.mark.parametrize("odd", ["\ud800", "a\0b"])
def test_text_that_cannot_be_stored_is_refused_whole(hf: Holdfast, db: DB, odd: str) -> None:
    """All or none."""

    @hf.task
    def keep(text: str) -> None: ...

    with pytest.raises((BadInput, InputRefused)):
        keep.start_many([{"text": "fine"}, {"text": odd}])

    assert db.execute("select count(*) from holdfast.steps").fetchone() == (0,)
