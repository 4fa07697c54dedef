"""What the toy publishes, and a page about it."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.models import Ending
from holdfast.notify import Entry, Subscribers

CATALOGUE = {"toy.wish.granted": Entry("A wish was granted.", {"kind": str})}


def publish(subscribers: Subscribers, endings: Sequence[Ending]) -> None:
    for ending in endings:
        if ending.event == "succeeded" and ending.run_id is not None:
            subscribers.publish_now("toy.wish.granted", ending.run_id, ending.step_id, kind=ending.kind)


def page() -> str:
    return "# Wishes\n"
