"""The checker itself: it finds what it is there to find."""

from __future__ import annotations

from datetime import UTC, datetime

from holdfast.models import Event, JournalEntry
from scenarios.history import Line, attempts_overlap, leases_overlap


def entry(number: int, event: Event, lease: int) -> JournalEntry:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return JournalEntry(number, at, "t", "work.task", "a", event, "b", "worker", "w", 1, None, 1, lease, None, None)


def line(what: str, lease: int, at: float) -> Line:
    return Line(what, "doze", 1, lease, 1, "w", 1, at)


def test_a_claim_of_a_step_that_is_held_is_found() -> None:
    """W-39"""
    sound = [entry(1, "claimed", 7), entry(2, "expired", 7), entry(3, "claimed", 8), entry(4, "succeeded", 8)]

    assert leases_overlap(sound) == []
    assert leases_overlap([sound[0], *sound[2:]]) == [sound[2]]


def test_accepted_attempts_that_overlap_are_found_and_refused_ones_are_not_counted() -> None:
    """W-39"""
    written = [line("begin", 7, 1.0), line("begin", 8, 2.0), line("end", 7, 3.0), line("end", 8, 4.0)]
    one_accepted = [entry(1, "expired", 7), entry(2, "succeeded", 8)]
    both_accepted = [entry(1, "retried", 7), entry(2, "succeeded", 8)]

    assert attempts_overlap(one_accepted, written) == []
    assert attempts_overlap(both_accepted, written) == [(written[2], written[1])]
