"""The output that a recorder keeps is the same whether lines are kept as bytes or become text at once."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.masking import Masker
from holdfast.ops import allowance, output, recorder
from holdfast.ops.allowance import Allowance
from holdfast.ops.recorder import Pipe, Recorder, Surroundings
from holdfast.ops.sender import Entry

SECRETS = ("hunter2-hunter2", "first line\nnext\nlast line", "äöüäöü")
PARTS = [
    b"compiled a.c\n", b"ok\n", b"\n", b"no end", b"hunter2-hunter2", b"hunter2-", b"hun\x07ter2-hunter2\n", b"\x00",
    b"first line\n", b"next\n", b"last line\n", b"next\nlast line", b"10%\r20%\r", b"\r\n", b"\x1b[31m", b"\x1b]0;t",
    b"::group::Build\n", b"::gro", b"up::x\n", b"::endgroup::\n", "äöü".encode(), b"\xc3", b"\xff", b"x" * 40 + b"\n",
]  # fmt: skip
WRITES = st.lists(st.tuples(st.sampled_from(["stdout", "stdout", "stderr"]), st.sampled_from(PARTS)), max_size=60)
Write = tuple[Any, bytes]


class Events:
    """Takes events as a sender does, and has room for all of them."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def put(self, entry: Entry) -> bool:
        self.entries.append(entry)
        return True


def recorded(writes: list[Write], *, later: bool, tail: int = 10**6) -> tuple[str, list[Entry], str, str]:
    """Record writes after a head that takes nothing; return the output, the remarks and both ends."""
    masker, events = Masker(SECRETS), Events()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "LEAST_LATER", 1 if later else 10**9)
        patch.setattr(output, "LONGEST_LINE", 30)
        patch.setattr(recorder, "LONGEST_CODE", 8)
        patch.setattr(allowance.Tail.__init__, "__defaults__", (tail,))
        around = Surroundings(lambda _: None, lambda: None, masker.text, masker.stream, Allowance(0, tail, 0))
        taker = Recorder("build", around, events, None)  # type: ignore[arg-type]
        taker.read("stdout", b"begin\n")
        taker.flush_if_due(float("inf"))
        for pipe, data in writes:
            taker.read(pipe, data)
        taker.finish()
    stored = [entry for entry in events.entries if "stream" in entry.payload]
    remarks = [entry for entry in events.entries if "dropped_lines" in entry.payload]
    text = "".join(f"{entry.message}\n" for entry in stored)
    return text, remarks, taker.end_of("stdout"), taker.end_of("stderr")


def cut(writes: list[Write], places: list[int]) -> list[Write]:
    """Cut writes at some of their places, and join others."""
    result: list[Write] = []
    for number, (pipe, part) in enumerate(writes):
        is_joined = bool(result) and result[-1][0] == pipe and number % 5 in places
        data = result.pop()[1] + part if is_joined else part
        edges = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
        result += [(pipe, data[a:b]) for a, b in pairwise(edges)]
    return result


@settings(deadline=None)
@given(WRITES, st.lists(st.integers(0, 30), max_size=4))
@example(
    [("stdout", b"a line of a build\n" * 4 + b"first line\n"), ("stdout", b"next\n"), ("stdout", b"last line\n")], []
)
@example([("stdout", b"ok\n::gro"), ("stdout", b"up::x\nok\n")], [])
def test_lines_that_become_text_later_are_recorded_as_all_others_are(writes: list[Write], places: list[int]) -> None:
    pieces = cut(writes, places)

    assert recorded(pieces, later=True) == recorded(pieces, later=False)


@settings(deadline=None, max_examples=25)
@given(st.binary(max_size=40), st.sampled_from(SECRETS), st.binary(max_size=40))
def test_a_secret_that_reads_split_at_any_byte_is_never_stored(before: bytes, secret: str, after: bytes) -> None:
    lines = b"a line of a build\n" * 3
    data = lines + before + secret.encode() + after + b"\n" + lines
    whole = recorded([("stdout", data)], later=False)
    for place in range(len(data) + 1):
        pieces: list[Write] = [("stdout", data[:place]), ("stdout", data[place:])]

        later = recorded(pieces, later=True)

        assert later == whole
        assert secret not in "".join([later[0], later[2]])


@settings(deadline=None)
@given(WRITES)
def test_of_the_lines_that_do_not_fit_the_last_are_kept_and_the_others_counted(writes: list[Write]) -> None:
    whole, _, out, err = recorded(writes, later=True)
    text, remarks, *ends = recorded(writes, later=True, tail=200)

    dropped = remarks[0].payload["dropped_lines"] if remarks else 0
    assert whole.endswith(text)
    assert len(text) <= 200
    assert whole.count("\n") == text.count("\n") + dropped
    assert ends == [out, err]


def test_each_event_of_a_tail_knows_its_group() -> None:
    pipe: Pipe = "stdout"
    masker, events = Masker(), Events()
    around = Surroundings(lambda _: None, lambda: None, masker.text, masker.stream, Allowance(head=0, tail=110_000))
    taker = Recorder("build", around, events, None)  # type: ignore[arg-type]
    taker.read(pipe, b"::group::Fetch\n")
    taker.flush_if_due(float("inf"))
    for title in (b"Build", b"Test"):
        taker.read(pipe, b"::group::%s\n" % title + b"a plain line\n" * 4000)
        taker.read(pipe, b"a plain line\n" * 4000)
    taker.finish()

    groups = [entry.payload.get("group") for entry in events.entries if "stream" in entry.payload]
    assert groups == ["Build", "Test"], "the line of the first group was dropped"


@pytest.mark.parametrize("place", range(len(b"::group::Build\n")))
def test_a_group_whose_dropped_line_two_reads_split_is_still_known(place: int) -> None:
    masker, events = Masker(), Events()
    around = Surroundings(lambda _: None, lambda: None, masker.text, masker.stream, Allowance(head=0, tail=60_000))
    taker = Recorder("build", around, events, None)  # type: ignore[arg-type]
    title, lines = b"::group::Build\n", b"a plain line\n" * 4000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(allowance.Tail.__init__, "__defaults__", (60_000,))
        for data in (lines, lines, lines + title[:place], title[place:] + lines, lines):
            taker.read("stdout", data)
        taker.finish()

    groups = [entry.payload.get("group") for entry in events.entries if "stream" in entry.payload]
    assert groups == ["Build"]
