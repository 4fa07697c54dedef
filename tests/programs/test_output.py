"""The output of programs as text: the same however it is cut into chunks, and bounded whatever they write."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.ops.allowance import Allowance, Tail
from holdfast.ops.output import (
    EACH,
    Batches,
    Chunk,
    Cleaner,
    End,
    Lines,
)

BEL, ESC, ST = b"\x07", b"\x1b", b"\x1b\\"
ODD = [
    b"\x1b[31m", b"\x1b[0m", b"\x1b[2K", b"\x1b]0;title\x07", b"\x1b]8;;http://a\x1b\\", b"\x1b(B", b"\x1bPq\x1b\\",
    b"\x1b", b"\x1b[", b"\x1b]", b"\x07", b"\x00", b"\x08", b"\r", b"\r\n", b"\n", b"\t", b"\x7f", b"\xc2\x9b", b"\xff",
    b"\xe2\x82", b"\xe2\x82\xac", "ä".encode(), b"a", b"bcd", b"::group::x\n", b"::endgroup::\n", b"\\", b"m", b"[31m",
]  # fmt: skip
BYTES = st.lists(st.sampled_from(ODD) | st.binary(max_size=4), max_size=30).map(b"".join)
TEXTS = st.lists(st.sampled_from(["a", "bc", "\n", "\r", "\r\n", "ä€", "x" * 7]), max_size=40).map("".join)


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    """Cut data at some of its places."""
    edges = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def cleaned(chunks: Iterable[bytes]) -> str:
    cleaner = Cleaner()
    return "".join(map(cleaner.feed, chunks)) + cleaner.end()


def assembled(chunks: Iterable[str], longest: int = 10) -> str:
    lines = Lines(longest)
    return "".join(map(lines.feed, chunks)) + lines.end()


@given(BYTES, st.lists(st.integers(0, 200), max_size=8))
@example(b"\x1b\x1b[0m[31m", [5])
@example(b"\x1b]abc\x1b[31mx", [6])
def test_text_is_the_same_however_reads_split_it(data: bytes, places: list[int]) -> None:
    assert cleaned(cut(data, places)) == cleaned([data])


@given(BYTES)
def test_text_has_no_control_character_that_could_reach_a_terminal_or_that_postgresql_refuses(data: bytes) -> None:
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]", cleaned([data]))


@given(st.text(st.characters(exclude_categories=("Cc", "Cs")) | st.sampled_from("\n\t")))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert cleaned([text.encode()]) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x1b[1;31mred\x1b[0m and plain", "red and plain"),
        (b"\x1b]0;a title\x07done", "done"),
        (b"\x1b]8;;http://example.com\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"a\x00b\x08c", "abc"),
        (b"caf\xe9 \xff\xfe", "caf\ufffd \ufffd\ufffd"),
        (b"\x1b]never ended\nnext", "]never ended\nnext"),
        (b"\x1b[" + b"9" * 5000 + b"m", "[" + "9" * 5000 + "m"),
    ],
    ids=["colour", "title", "link", "controls", "invalid", "open", "endless"],
)
def test_codes_of_terminals_disappear_and_invalid_bytes_are_marked(data: bytes, text: str) -> None:
    assert cleaned([data]) == text


@given(TEXTS, st.lists(st.integers(0, 100), max_size=6))
def test_lines_are_the_same_however_text_is_split(text: str, places: list[int]) -> None:
    edges = [0, *sorted({place % (len(text) + 1) for place in places}), len(text)]
    chunks = [text[a:b] for a, b in pairwise(edges)]

    assert assembled(chunks) == assembled([text])


@given(TEXTS)
def test_a_line_is_what_a_terminal_would_show_of_it_and_is_cut_with_a_mark(text: str) -> None:
    """The model: the last part between carriage returns that is not empty, and at most ten characters of it."""
    lines = text.split("\n")
    shown = [next((part for part in reversed(line.split("\r")) if part), "") for line in lines]
    expected = [p if len(p) <= 10 else f"{p[:10]} … [cut: {len(p) - 10:,} more characters]" for p in shown]
    if not shown[-1]:
        expected.pop()  # no line begins after the last newline

    assert assembled([text]) == "".join(f"{line}\n" for line in expected)


def test_a_line_of_fifty_megabytes_needs_the_memory_of_its_first_characters() -> None:
    lines = Lines()
    for _ in range(50):
        assert lines.feed("x" * 2**20) == ""

    line = lines.feed("\nnext\n")

    assert line == f"{'x' * 16384} … [cut: {50 * 2**20 - 16384:,} more characters]\nnext\n"


@given(st.lists(st.tuples(st.text(st.sampled_from("ab€\n"), max_size=40), st.floats(0, 0.2)), max_size=20))
def test_batches_lose_nothing_and_none_exceeds_its_size(writes: list[tuple[str, float]]) -> None:
    batches = Batches(largest=64)
    now, text = 0.0, ""
    chunks: list[Chunk] = []
    for part, wait in writes:
        lines = "".join(f"{line[:10]}\n" for line in part.split("\n"))
        now += wait
        text += lines
        if batches.due_at is not None and now >= batches.due_at:
            chunks += batches.flush()
        chunks += batches.add(lines, "stdout", now)
    chunks += batches.flush()

    assert "".join(chunk.text for chunk in chunks) == text
    assert all(chunk.size == len(chunk.text.encode()) <= 64 and chunk.text.endswith("\n") for chunk in chunks)


def test_a_batch_is_due_a_quarter_of_a_second_after_its_first_line() -> None:
    batches = Batches()
    assert list(batches.add("a\n", "stdout", 10.0)) == []
    assert list(batches.add("b\n", "stderr", 10.2)) == []

    assert batches.due_at == 10.0 + EACH
    assert [(chunk.text, chunk.stream) for chunk in batches.flush()] == [("a\nb\n", "both")]
    assert batches.due_at is None
    assert list(batches.flush()) == []


def test_a_chunk_knows_the_group_that_is_open_where_it_begins() -> None:
    batches = Batches(largest=30)
    text = "one\n::group::Build it\ntwo\n::endgroup::\nthree\n::group::\nfour\n"
    chunks = [*batches.add("".join(text), "stdout", 0), *batches.flush(), *batches.add("five\n", "stdout", 1)]
    chunks += batches.flush()

    assert [(chunk.text.split("\n")[0], chunk.group) for chunk in chunks] == [
        ("one", None), ("::endgroup::", "Build it"), ("four", "group"), ("five", "group"),
    ]  # fmt: skip


def chunk(size: int) -> Chunk:
    return Chunk("x" * (size - 1) + "\n", "stdout", None, size)


@given(st.lists(st.lists(st.integers(1, 64), max_size=30), max_size=6))
def test_a_run_keeps_the_head_and_the_ends_within_its_allowance(shells: list[list[int]]) -> None:
    allowance = Allowance(head=200, tail=150, reserve=100)
    kept = 0
    for sizes in shells:
        tail = Tail(150)
        is_whole = True
        for size in sizes:
            is_whole = is_whole and allowance.takes(size)
            if is_whole:
                kept += size
            else:
                tail.add(chunk(size))
        last = tail.end(allowance)
        kept += sum(each.size for each in last)
        lost = tail.dropped_bytes
        assert lost + sum(each.size for each in last) == sum(sizes) - sum(sizes[: sizes_taken(sizes, tail, last)])

    assert kept <= 200 + 150 + 100


def sizes_taken(sizes: list[int], tail: Tail, last: list[Chunk]) -> int:
    """Return how many chunks went to the head: those that are neither dropped nor in the tail."""
    return len(sizes) - tail.dropped_lines - len(last)


def test_the_end_of_a_stream_is_its_last_characters() -> None:
    end = End(5)
    for part in ("abc", "de", "fghijk", "l"):
        end.add(part)

    assert end.text == "hijkl"
