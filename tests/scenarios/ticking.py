"""The app of workers whose schedules the tests follow."""

from __future__ import annotations

from holdfast import Holdfast

hf = Holdfast()


@hf.task
def tick() -> None:
    """Do nothing: that it was started is what counts."""


hf.schedule("of_the_app", tick, every=1)
