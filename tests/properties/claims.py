"""What a claim may give, and what it may park."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from properties.subjects import Step

ONE_LOOK = timedelta(seconds=1)  # a worker looks from the beginning of its queue at least so often
LIVES = timedelta(seconds=140)  # a worker lives for 150 s after it was seen, and is seen each 10 s


class Asked(NamedTuple):
    worker: str
    queue: str
    kinds: Sequence[str] | None
    batch: int

    def serves(self, step: Step) -> bool:
        return self.queue == step.queue and (self.kinds is None or step.kind in self.kinds)


class Claims:
    """The last claim of each worker on each queue."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], tuple[Asked, datetime]] = {}

    def remember(self, asked: Asked, *, now: datetime) -> None:
        self._last[asked.worker, asked.queue] = asked, now

    def check(self, asked: Asked, due: list[Step], taken: list[Step], *, now: datetime) -> None:
        """The first of those that are due, the higher priority before the lower."""
        assert [s.priority for s in taken] == sorted((s.priority for s in taken), reverse=True)
        if self._may_go_on(asked, now):
            # What is before the end of its last batch waits for the next full look.
            assert len(taken) <= asked.batch
            assert all(_stand_together(due, taken, priority) for priority in {s.priority for s in taken})
        else:
            assert {s.id for s in taken} == {s.id for s in due[: asked.batch]}

    def check_parked(self, parked: Iterable[Step], *, now: datetime) -> None:
        """Only what nobody serves is parked."""
        alive = [asked for asked, at in self._last.values() if now - at < LIVES]
        assert not [step for step in parked for asked in alive if asked.serves(step)]

    def _may_go_on(self, asked: Asked, now: datetime) -> bool:
        return any(last.worker == asked.worker and now - at < ONE_LOOK for last, at in self._last.values())


def _stand_together(due: list[Step], taken: list[Step], priority: int) -> bool:
    """Whether the taken steps of a priority stand side by side among those that are due."""
    places = [step in taken for step in due if step.priority == priority]
    first = places.index(True)
    return all(places[first : first + sum(step.priority == priority for step in taken)])
