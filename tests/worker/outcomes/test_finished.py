"""Lines for steps that succeed while people can read them, and a summary per second where they are too many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.worker.finished import MOST_LINES, WINDOW, Finished, Summary


def settle(finished: Finished, now: float, count: int, kind: str = "mail") -> tuple[Summary | None, bool]:
    """Do what a settle does; gives the summary of what was before, and whether each of these gets a line."""
    summary = finished.flush(now)
    has_lines = finished.takes_lines(now, count)
    if not has_lines:
        finished.add({kind: count})
    return summary, has_lines


def test_few_get_a_line_each() -> None:
    finished = Finished()

    assert [settle(finished, number / 10, 4) for number in range(20)] == [(None, True)] * 20
    assert finished.flush_at is None


def test_many_are_summed_up_by_kind_once_a_second_and_lines_come_back_when_it_is_quiet() -> None:
    finished = Finished()

    assert settle(finished, 0, 30) == (None, True)
    assert settle(finished, 0.5, 40) == (None, False)
    assert settle(finished, 0.6, 5, "bill") == (None, False)
    assert finished.flush_at == WINDOW
    assert finished.flush(0.9) is None
    assert settle(finished, 1.0, 20) == (Summary(45, {"mail": 40, "bill": 5}, 1.0), False)  # the last second was busy
    assert finished.flush(2.5) == Summary(20, {"mail": 20}, 1.5)
    assert settle(finished, 2.6, 20) == (None, True)


def test_what_was_counted_is_told_at_the_end() -> None:
    finished = Finished()
    settle(finished, 0, MOST_LINES + 1)

    assert finished.close(0.25) == Summary(51, {"mail": 51}, 0.25)
    assert finished.close(0.3) is None


@given(st.lists(st.tuples(st.floats(0, 2), st.integers(1, 200)), max_size=60))
def test_every_step_is_in_a_line_or_in_one_summary_and_a_second_has_no_more_lines_than_it_may(
    settles: list[tuple[float, int]],
) -> None:
    finished, now, told = Finished(), 0.0, 0
    lines: list[float] = []
    for wait, count in settles:
        now += wait
        summary, has_lines = settle(finished, now, count)
        told += summary.count if summary else 0
        lines += [now] * count if has_lines else []
    last = finished.close(now)

    assert told + (last.count if last else 0) + len(lines) == sum(count for _, count in settles)
    assert all(sum(at <= line < at + WINDOW for line in lines) <= 2 * MOST_LINES for at in lines)
