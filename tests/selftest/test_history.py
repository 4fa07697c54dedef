"""The judge of self-tests and scenarios: each thing that must not be is found, and what went well is sound."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.models import Event, JournalEntry
from holdfast.selftest.history import Evidence, Verdict, judge, taken_early


def entry(number: int, event: Event, lease: int, step: int = 1) -> JournalEntry:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return JournalEntry(number, at, "t", "work.task", "a", event, "b", "worker", "w", step, None, 1, lease, None, None)


STORY = [entry(1, "claimed", 7), entry(2, "expired", 7), entry(3, "claimed", 8), entry(4, "succeeded", 8)]
SOUND = Evidence(story=STORY, kept=1, effects=[(1, 8)], results=[(1, 8)], paying={1}, written=[])


def test_what_went_well_is_sound() -> None:
    assert judge(SOUND, started=1).is_sound


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        pytest.param(replace(SOUND, effects=[]), Verdict(1, 0), id="a success without its effect"),
        pytest.param(replace(SOUND, effects=[(1, 8), (1, 8)]), Verdict(0, 1), id="an effect twice"),
        pytest.param(replace(SOUND, effects=[(1, 8), (1, 7)]), Verdict(0, 1), id="an effect of a refused attempt"),
        pytest.param(replace(SOUND, results=[(1, 7)]), Verdict(0, 1), id="a result of a refused attempt"),
        pytest.param(replace(SOUND, story=[*STORY, entry(5, "succeeded", 8)]), Verdict(0, 1), id="a second success"),
        pytest.param(replace(SOUND, story=STORY[:1] + STORY[2:]), Verdict(0, 1), id="a claim of what is held"),
        pytest.param(replace(SOUND, kept=2), Verdict(0, 0, strangers=1), id="a task that nobody started"),
        pytest.param(replace(SOUND, broken=("x",)), Verdict(0, 0, broken=("x",)), id="an invariant"),
    ],
)
def test_what_must_not_be_is_found(found: Evidence, verdict: Verdict) -> None:
    assert judge(found, started=1) == verdict


def test_a_task_that_does_not_succeed_is_lost_unless_it_was_meant_to_fail() -> None:
    unfinished = replace(SOUND, story=STORY[:3], effects=[], results=[])

    assert judge(unfinished, started=1) == Verdict(1, 0)
    assert judge(unfinished, started=1, failed=1).is_sound


def test_a_lease_that_is_taken_soon_after_it_was_granted_is_found() -> None:
    lease = timedelta(seconds=1)
    soon, late = (replace(STORY[1], at=STORY[1].at + lease * share) for share in (0.1, 0.99))

    assert taken_early([STORY[0], soon], lease) == [soon]
    assert taken_early([STORY[0], late], lease) == []
